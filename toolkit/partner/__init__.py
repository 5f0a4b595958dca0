"""A client for partners: register clients, request upload credentials, send the files.

::

    client = PartnerClient("https://sales.example.com", token)
    client.register_client({"cpf": ..., "address": {...}})
    client.upload("sale-1", Path("contract.pdf"), evidence_type="DOC_CONTRATANTE", media_type="application/pdf")

It knows the contract and nothing of the toolkit's database and bucket; ``toolkit evidence upload`` sends its
files with ``post_file`` too.
"""

from toolkit.contract.resources import RegisteredClient as ClientRegistered
from toolkit.contract.resources import UploadCredentials as Credentials
from toolkit.partner.client import PartnerClient
from toolkit.partner.posting import FormPolicy, post_file

__all__ = ["ClientRegistered", "Credentials", "FormPolicy", "PartnerClient", "post_file"]
