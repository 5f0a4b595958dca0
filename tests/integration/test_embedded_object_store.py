import stat

import httpx
import psutil
import pytest
from botocore.exceptions import ClientError

from tests.conftest import client_of
from tests.support.embedded_homes import kill
from tests.support.waiting import PATIENCE
from toolkit import embedded
from toolkit.errors import EmbeddedServiceError


def client(access, **credentials):
    return client_of(access, retries={"total_max_attempts": 1}, **credentials)


@pytest.fixture
def access(own_home):
    return embedded.bucket_access(own_home)


@pytest.fixture
def shared(home):
    """The server of all tests, for those that only ask it."""
    return embedded.bucket_access(home)


def test_what_was_acknowledged_survives_a_kill(own_home, access):
    for number in range(20):
        client(access).put_object(Bucket=embedded.BUCKET, Key=f"sales/{number}/a b.pdf", Body=b"x" * number)
    kill(embedded.statuses(own_home)[1].pid)
    again = embedded.bucket_access(own_home)
    assert again == access, "forms that were issued before go on working"
    listed = client(again).list_objects_v2(Bucket=embedded.BUCKET)["Contents"]
    assert sorted((item["Key"], item["Size"]) for item in listed) == sorted(
        (f"sales/{number}/a b.pdf", number) for number in range(20)
    )
    assert client(again).get_object(Bucket=embedded.BUCKET, Key="sales/3/a b.pdf")["Body"].read() == b"xxx"


@pytest.mark.parametrize("key", ["ours", "test", "000000000000", "AKIA0000000000000000"])
def test_a_key_is_worth_nothing_without_its_secret(shared, key):
    client(shared).put_object(Bucket=embedded.BUCKET, Key="a", Body=b"1")
    key = shared.access_key_id if key == "ours" else key
    stranger = {"aws_access_key_id": key, "aws_secret_access_key": "guessed"}
    for call in (
        lambda: client(shared, **stranger).list_objects_v2(Bucket=embedded.BUCKET),
        lambda: client(shared, **stranger).get_object(Bucket=embedded.BUCKET, Key="a"),
        lambda: client(shared, **stranger).put_object(Bucket=embedded.BUCKET, Key="a", Body=b"2"),
    ):
        with pytest.raises(ClientError, match=r"SignatureDoesNotMatch|InvalidAccessKeyId"):
            call()


@pytest.mark.parametrize("key", ["ours", "test"])
def test_a_link_or_a_form_signed_with_a_guess_is_refused(shared, key):
    client(shared).put_object(Bucket=embedded.BUCKET, Key="a", Body=b"1")
    key = shared.access_key_id if key == "ours" else key
    stranger = client(shared, aws_access_key_id=key, aws_secret_access_key="guessed")
    for signer, link, posted in ((stranger, 403, 403), (client(shared), 200, 204)):
        address = signer.generate_presigned_url("get_object", {"Bucket": embedded.BUCKET, "Key": "a"})
        form = signer.generate_presigned_post(embedded.BUCKET, "a")
        assert httpx.get(address, timeout=PATIENCE).status_code == link
        sent = httpx.post(form["url"], data=form["fields"], files={"file": b"1"}, timeout=PATIENCE)
        assert sent.status_code == posted


@pytest.mark.parametrize(
    ("method", "path", "headers"),
    [
        ("POST", "/_ministack/reset", {}),
        ("GET", "/_ministack/health", {}),
        ("POST", "//_ministack/reset", {}),
        ("GET", "/evidence/a", {}),
        ("GET", "/evidence/a", {"Authorization": "Bearer anything"}),
        ("GET", "/evidence/a", {"Authorization": "AWS test:anything"}),
        ("GET", "/evidence/a", {"Authorization": "AWS4-HMAC-SHA256 Credential=/"}),
        ("GET", "/evidence/a?X-Amz-Credential=test/20260101/us-east-1/s3/aws4_request", {}),
        ("GET", "/evidence/a?AWSAccessKeyId=test&Signature=x", {}),
        ("POST", "/?Action=GetSessionToken&Version=2011-06-15", {}),
        ("POST", "/evidence?delete", {"Content-Type": "multipart/form-data; boundary=x"}),
        ("GET", "/health", {"Authorization": "AWS4-HMAC-SHA256 Credential=x/"}),
        ("GET", "/health?X-Amz-Algorithm=AWS4-HMAC-SHA256&X-Amz-Credential=x%2F", {}),
        ("GET", "/restapis/a/b/_user_request_/", {"Authorization": "AWS4-HMAC-SHA256 Credential=x/"}),
        ("OPTIONS", "/evidence/a", {"Origin": "https://example.com"}),
    ],
)
def test_what_is_not_signed_is_refused(shared, method, path, headers):
    answer = httpx.request(method, shared.s3_endpoint + path, headers=headers)
    assert (answer.status_code, "This server speaks S3 only." in answer.text) == (403, True)


def test_a_name_that_a_web_page_made_up_is_refused(shared):
    form = client(shared).generate_presigned_post(embedded.BUCKET, "a")
    with httpx.Client(headers={"Host": "rebound.example:80"}, timeout=PATIENCE) as page:
        assert page.post(form["url"], data=form["fields"], files={"file": b"1"}).status_code == 403


def test_it_listens_on_this_machine_only_and_only_the_owner_reads_its_files(own_home, access):
    client(access).put_object(Bucket=embedded.BUCKET, Key="a/b", Body=b"1")
    pid = embedded.statuses(own_home)[1].pid
    listening = [each.laddr.ip for each in psutil.Process(pid).net_connections() if each.status == "LISTEN"]
    assert set(listening) == {"127.0.0.1"}
    for path in (own_home / "objects", *(own_home / "objects").rglob("*")):
        assert stat.S_IMODE(path.stat().st_mode) & 0o077 == 0, path


def test_a_server_that_does_not_come_up_shows_its_log(own_home):
    (own_home / "objects" / "port").mkdir(parents=True)
    with pytest.raises(EmbeddedServiceError, match=r"(?s)S3 server did not start.*objects/log.*IsADirectoryError"):
        embedded.bucket_access(own_home)
