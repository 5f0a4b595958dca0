#!/bin/sh
# Checks the files in a folder against the signed log, with openssl and coreutils alone.
# usage: sh verify.sh [FOLDER [KEY.pem]]    KEY.pem: the log's key as you know it; without it the one in the folder
set -eu
case ${2:-} in
  '') key=log.pem ;;
  /*) key=$2 ;;
  *) key=$PWD/$2 ;;
esac
cd "${1:-.}"
t=$(mktemp -d)
trap 'rm -rf "$t"' EXIT
fail() {
  echo "FAILED: $1"
  exit 1
}
[ -r "$key" ] || fail "$key cannot be read"

# 1. The files are those of SHA256SUMS, and entry.json names SHA256SUMS.
if [ -e SHA256SUMS ]; then
  ! grep -qvE '^[0-9a-f]{64}  [^[:cntrl:]]+$' SHA256SUMS && ! grep -qE '^.{66}\.{0,2}/' SHA256SUMS ||
    fail "SHA256SUMS is no list of files"
  while IFS= read -r line || [ -n "$line" ]; do
    case ${line#*  } in # the inputs of an audit, which are kept for the newest audits only
      sales.parquet | records.parquet | objects.parquet) [ -e "${line#*  }" ] || continue ;;
    esac
    printf '%s\n' "$line"
  done < SHA256SUMS | sha256sum -c - || fail "a file is not what was written"
  sums=$(sha256sum < SHA256SUMS | cut -c1-64)
  grep -qF "\"SHA256SUMS\":\"$sums\"" entry.json || fail "entry.json is about other files"
  cut -c67- SHA256SUMS > "$t/names"
  find -L . -type f | cut -c3- > "$t/present"
  while IFS= read -r file; do
    case $file in
      */*) sed -n 's|/.*||p' "$t/names" | grep -qxF -e "${file%%/*}" || continue ;;
      SHA256SUMS | entry.json | entry.json.tlog-proof | checkpoint | checkpoint.cosigs | checkpoint.tsr) continue ;;
      log.vkey | log.pem | VERIFY.md | verify.sh) continue ;;
      manifest.json) echo "Nothing proves $file" && continue ;;
    esac
    ! grep -qxF -e "$file" "$t/names" || continue
    ! sed 'h; s/.*\.//p; g; s/\.[^.]*$//' "$t/names" | grep -qxF -e "${file##*.}" -e "${file%.*}" ||
      fail "$file was added: nothing proves it"
    echo "Nothing proves $file"
  done < "$t/present"
elif grep -qF '"SHA256SUMS":' entry.json; then
  fail "SHA256SUMS is missing"
else
  # Each FIELD.opened has the key, the value and the text of a field of the entry.
  for file in *.opened; do
    [ -e "$file" ] || continue
    value=$(sed -n 2p "$file")
    mac=$(printf %s "$value" | openssl dgst -sha256 -mac HMAC -macopt "hexkey:$(sed -n 1p "$file")" | sed 's/.* //')
    grep -qF "\"${file%.opened}\":\"$mac\"" entry.json || fail "$file is not what the entry holds"
    [ "$(sed -n '3,$p' "$file" | wc -c)" = 0 ] ||
      [ "$(printf %s "$(sed -n '3,$p' "$file")" | sha256sum | cut -c1-64)" = "$value" ] || fail "$file has another text"
  done
fi

# 2. The checkpoint in the proof, and beside it, is signed by the key.
sed '1,/^$/d' entry.json.tlog-proof > "$t/note"
sed '/^$/,$d' "$t/note" > "$t/text"
origin=$(sed -n 1p "$t/text")
size=$(sed -n 2p "$t/text")
root=$(sed -n 3p "$t/text")
index=$(sed '2{/^extra /d;}' entry.json.tlog-proof | sed -n '1{/^c2sp.org\/tlog-proof@v1$/!q;}; 2s/^index //p')
for number in "$size" "$index"; do
  case $number in
    '' | *[!0-9]* | 0?* | ???????????????????*) fail "a number in the proof is none" ;;
  esac
done
[ "$(wc -l < "$t/text")" -eq 3 ] || fail "the checkpoint has other lines"
{
  printf '\001'
  openssl pkey -pubin -in "$key" -outform DER | tail -c 32
} > "$t/public"
{
  printf '%s\n' "$origin"
  cat "$t/public"
} | openssl dgst -sha256 -binary | head -c 4 > "$t/id"
[ "$origin+$(od -An -tx1 < "$t/id" | tr -d ' ')+$(base64 < "$t/public")" = "$(cat log.vkey)" ] ||
  fail "log.vkey is another key, or of another log"
for note in checkpoint "$t/note"; do
  sed '/^$/,$d' "$note" | cmp -s - "$t/text" || fail "checkpoint is another one than that of the proof"
  sed '1,/^$/d' "$note" > "$t/lines"
  ! grep -qvE '^— [^ +]+ [A-Za-z0-9+/=]+$' "$t/lines" || fail "a line in $note is no signature"
  signed=no
  while read -r _ name signature; do
    [ "$name" = "$origin" ] || continue
    printf %s "$signature" | base64 -d > "$t/raw"
    head -c 4 "$t/raw" | cmp -s - "$t/id" || continue
    tail -c +5 "$t/raw" > "$t/signature"
    openssl pkeyutl -verify -rawin -pubin -inkey "$key" -in "$t/text" -sigfile "$t/signature" > "$t/said" 2>&1 ||
      fail "the checkpoint is not signed by this key"
    signed=yes
  done < "$t/lines"
  [ $signed = yes ] || fail "the checkpoint is not signed by this key"
done

# 3. From the entry the hashes of the proof lead to the root of the checkpoint.
hash() {
  openssl dgst -sha256 -binary
}
{
  printf '\000'
  cat entry.json
} | hash > "$t/found"
[ "$index" -lt "$size" ] || fail "the proof is of another log"
sed '1,/^index /d; /^$/,$d' entry.json.tlog-proof > "$t/path"
[ "$(wc -l < "$t/path")" -le 63 ] || fail "the proof is too long"
! grep -qvE '^[A-Za-z0-9+/]{43}=$' "$t/path" || fail "the proof is none"
place=$index
last=$((size - 1))
while read -r line; do
  [ "$last" -gt 0 ] || fail "the proof is too long"
  printf %s "$line" | base64 -d > "$t/other"
  if [ $((place % 2)) = 1 ] || [ "$place" = "$last" ]; then
    {
      printf '\001'
      cat "$t/other" "$t/found"
    } | hash > "$t/next"
    while [ $((place % 2)) = 0 ] && [ "$place" != 0 ]; do
      place=$((place / 2))
      last=$((last / 2))
    done
  else
    {
      printf '\001'
      cat "$t/found" "$t/other"
    } | hash > "$t/next"
  fi
  mv "$t/next" "$t/found"
  place=$((place / 2))
  last=$((last / 2))
done < "$t/path"
[ "$last" = 0 ] && [ "$(base64 < "$t/found")" = "$root" ] || fail "the entry is not in the log"
echo "OK: entry $index of $size is in the log $origin"
