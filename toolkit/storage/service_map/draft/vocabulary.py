"""The words that tables and columns are named by, in English and Portuguese, and what they stand for here."""

import re
import unicodedata
from functools import cache
from typing import Final

_SAME: Final = {
    "client": "client clients customer customers cliente clientes contratante contratantes consumer consumidor "
    "consumidores titular person pessoa pessoas profile profiles perfil assinante subscriber holder contracting "
    "contractor party",
    "address": "address addresses endereco enderecos addr adress",
    "installation": "installation installations instalacao instalacoes unit unidade uc premise",
    "sale": "sale sales venda vendas order orders pedido pedidos contract contracts contrato contratos proposal "
    "venta ventas proposta propostas deal adesao adesoes",
    "evidence": "evidence evidences evidencia evidencias proof prova provas comprovante comprovantes",
    "file": "file files arquivo arquivos arq attachment attachments anexo anexos upload uploads midia media "
    "archivo archivos grabacion grabaciones recording recordings gravacao gravacoes filename fname",
    "document": "document documents documento documentos doc docs",
    "name": "name names nome nm nomes nombre nombres",
    "first": "first primeiro given prenome firstname forename",
    "last": "last sobrenome surname family ultimo lastname apellido apellidos",
    "birth": "birth birthdate birthday nascimento nasc dob aniversario nacimiento",
    "email": "email mail correio correo",
    "phone": "phone telefone fone celular cell cellphone mobile tel whatsapp telefono",
    "cpf": "cpf taxid cpfcnpj",
    "rg": "rg identidade identity",
    "external": "external externo externa ext tracking integracao",
    "dealership": "dealership distribuidora distributor concessionaria utility dealer dist distribuidor",
    "enrollment": "enrollment enrolment matricula residence",
    "neighborhood": "neighborhood neighbourhood bairro district suburb colonia",
    "street": "street logradouro rua avenida thoroughfare endereco calle",
    "number": "number numero num nr no nro",
    "city": "city cidade municipio town localidade ciudad",
    "zip": "zip cep postal postcode zipcode postalcode",
    "group": "group grupo grp grupos groups",
    "responsible": "responsible responsavel resp responsable",
    "payer": "payer pagador pays paga pagante bill billing pagadora",
    "financial": "financial financially financeiro financeira fin finance financiero financiera",
    "partner": "partner partners parceiro parceiros reseller revenda revendedor channel canal seller vendedor "
    "socio revendedora agent agente representante broker loja corretor",
    "created": "created create criado criada criacao cadastro cadastrado inclusao incluido inserted insert "
    "creado creada creacion registrado alta registro registered added abertura opened emissao issued",
    "completed": "completed complete completion concluido concluida conclusao concluded finished finish finalized "
    "finalised finalizado finalizada "
    "finalizacion completado completada completa cerrado cerrada finalizacao closed encerrado encerramento "
    "fechamento fechado done efetivado efetivacao",
    "updated": "updated update modified atualizado atualizacao alterado alteracao modificado changed actualizado "
    "actualizada",
    "deleted": "deleted delete excluido excluida exclusao removed removido removida apagado deletado eliminado "
    "eliminada eliminacao borrado borrada removal archived discarded descartado descartada trashed",
    "cancelled": "cancelled canceled cancelado cancelada cancelamento cancel void voided anulado anulada "
    "annulled anulacion cancelacion rechazado rechazada estornado estornada estorno distratado distratada "
    "distrato rescindido rescindida revogado revogada revoked rejeitado rejeitada rejected recusado recusada "
    "refused reprovado reprovada lost perdido perdida superseded replaced substituido substituida",
    "active": "active ativo ativa enabled activo activa habilitado current vigente atual latest",
    "sent": "sent recorded gravado gravada envio enviado enviada send submitted recebido recebimento received "
    "subido subida recibido",
    "requested": "requested solicitado solicitacao solicitada request asked",
    "uploaded": "uploaded carregado upload",
    "expires": "expires expiry expiration expira expiracao validade valid vencimento expire vence vencimiento",
    "user": "user usuario author operador login",
    "by": "by por",
    "key": "key chave keys llave clave",
    "path": "path caminho location uri url link storage s3 blob ruta ubicacion",
    "folder": "folder pasta dir directory diretorio prefix prefixo bucketpath carpeta",
    "original": "original originalname",
    "format": "format formato",
    "mime": "mime mimetype contenttype",
    "content": "content conteudo",
    "type": "type tipo tp kind category categoria classe class especie clase",
    "status": "status result resultado outcome st situacao state estado sit situation stage etapa fase estados",
    "history": "history historico hist historial log logs event events evento eventos transition transitions "
    "andamento movimentacao movimento tramitacao timeline",
    "code": "code codigo cod cd sigla protocol protocolo reference referencia ref public publico",
    "id": "id ident identifier identificador pk",
    "uuid": "uuid guid",
    "date": "date data dt dat dia day dh dthr fecha fec",
    "time": "time hora hr hour horario tm",
    "at": "at em en on ts timestamp datahora",
    "flag": "flag fl flg in ind is eh has tem",
    "same": "same mesmo propria proprio own self",
    "other": "other outro outra separate separado third terceiro different diferente terceira",
    "role": "role papel funcao vinculo relationship relacao",
    "approved": "approved approval aprovado aprovada aprovacao validado validada validated valido valida accepted "
    "aceito aceita verified verificado conferido homologado",
    "test": "test teste testing sandbox demo ambiente environment duplicate duplicado duplicada dup",
    "draft": "draft rascunho borrador",
    "planned": "planned expected scheduled estimated forecast target due previsto prevista previsao estimado "
    "estimada agendado agendada prazo meta",
    "complement": "complement complemento",
    "state": "uf",
}

CANONICAL: Final = {word: token for token, words in _SAME.items() for word in words.split()}

MEANINGS: Final = frozenset(_SAME)
"""All tokens, which stand for words."""

_JOINED: Final = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])|[^A-Za-z0-9]+")

NOISE: Final = {
    *(
        "tb",
        "tbl",
        "tab",
        "t",
        "app",
        "core",
        "sch",
        "ds",
        "dsc",
        "desc",
        "tx",
        "txt",
        "vl",
        "fk",
        "of",
        "the",
        "as",
    ),
    *("utc", "de", "da", "do", "das", "dos", "e", "na", "nas", "nos"),
}


def words(name: str) -> tuple[str, ...]:
    """Return the words of a name, without case and accents, whatever parts them."""
    plain = unicodedata.normalize("NFKD", name).encode("ascii", "ignore").decode()
    return tuple(part.lower() for part in _JOINED.split(plain) if part)


@cache
def tokens(name: str) -> tuple[str, ...]:
    """Return the meanings of the words in a name; words without meaning are left out."""
    return tuple(
        CANONICAL.get(word, CANONICAL.get(word.removesuffix("s"), word))
        for word in words(name)
        if word not in NOISE
    )


def spoken(name: str, comment: str) -> str:
    """Return what a comment calls a column or a table whose name has no known word; else nothing."""
    subjects = _SAME.keys() - _GENERAL
    head = _HEAD.split(comment.strip())[0]
    cryptic = set(tokens(name)) - _SAME.keys() and not set(tokens(name)) & subjects
    return head if cryptic and set(tokens(head)) & subjects else ""


_GENERAL: Final = {"code", "id", "uuid", "number", "date", "time", "at", "flag", "by"}
"""Tokens that say nothing without another one."""
_HEAD: Final = re.compile(r"\s*[:;=(,.\n]|(?<=s) d[aeo]s? ")
"""The end of a comment's first words; in a heading such as ``Arquivos da venda`` the first names the rows."""


TABLE_WORDS: Final = {
    "clients": ({"client"}, set[str]()),
    "addresses": ({"address", "installation"}, set[str]()),
    "sales": ({"sale"}, set[str]()),
    "evidences": ({"evidence"}, {"file", "document"}),
}
"""Tokens that name each relation's table: surely, and perhaps."""

COLUMN_WORDS: Final = {
    "clients": {
        "external_id": ("external id", "external", "external code"),
        "cpf": ("cpf", "document number", "document", "tax id"),
        "rg": ("rg",),
        "number_on_dealership": (
            "number dealership", "code dealership", "dealership", "client code dealership", "dealership client",
            "client number",
        ),
        "enrollment": ("enrollment", "registration"),
        "first_name": ("first name", "first", "name"),
        "last_name": ("last name", "last"),
        "email": ("email", "e email"),
        "birthdate": ("birth date", "birth", "birth at"),
        "phone_number": ("phone number", "phone"),
        "created_at": ("created at", "created date", "created", "date"),
    },
    "addresses": {
        "neighborhood": ("neighborhood",),
        "installation_number": ("installation number", "installation code", "installation", "installation client"),
        "address": ("address", "street", "street name", "address line1", "line1"),
        "address_number": ("address number", "street number", "house number", "number"),
        "city": ("city", "city name"),
        "zip_code": ("zip code", "zip"),
    },
    "sales": {
        "utility_group": ("dealership group", "group", "group type", "group code", "tariff group", "tarifa group"),
        "is_client_financial_responsible": (
            "flag client financial responsible", "client financial responsible", "flag financial responsible",
            "financial responsible", "payer flag client", "payer client", "payer same client", "flag client payer",
            "same payer", "flag payer", "client payer", "payer", "other payer", "responsible",
        ),
        "partner": ("partner", "partner name"),
        "created_at": ("created at", "created date", "sale date", "sale at", "created", "date", "date at"),
        "completed_at": ("completed at", "completed date", "completed", "sale completed"),
    },
    "evidences": {
        "file_name": ("file name", "original name", "original file name", "file", "name"),
        "file_format": ("file format", "format", "mime", "content type", "mime type", "file type"),
        "type": ("type", "mime type", "mime", "content type", "media type"),
        "evidence_type": (
            "evidence type", "type evidence", "document type", "type document", "type", "file type", "code type",
        ),
        "object_key": (
            "object key", "path key", "key", "file key", "path", "file path", "path file", "path path", "object",
            "path object", "file",
        ),
        "requested_by": (
            "requested by", "created by", "uploaded by", "sent by", "requested user", "user", "created user",
            "file by",
        ),
        "requested_at": (
            "requested at", "created at", "requested date", "created date", "sent at", "sent date", "uploaded at",
            "file at", "created", "sent", "date", "date at", "file date",
        ),
        "expires_at": ("expires at", "expires date", "expires", "expires until"),
    },
}  # fmt: skip
"""Names of each column as tokens, the surest first; the ids are found by keys and references instead."""

GROUPS: Final = re.compile(
    r"(?:(?:utility|tarifa|tariff)?[ _-]*(?:group|grupo|grp|gr|g)?[ _-]*)([abcd])"
    r"|(?:group|grupo) +([abcd])(?: *[-–—:(].*)?",
    re.IGNORECASE,
)

YES: Final = {"x", "s", "sim", "si", "sí", "y", "yes", "t", "true", "1", "v", "verdadeiro"}
NO: Final = {"n", "nao", "não", "no", "f", "false", "0", "falso"}
