"""Notices to people: their texts, and the ways that they take.

::

    notice_settings   what the environment says about e-mail and webhook
    texts             the words, in Portuguese and English
    email             SMTP with TLS
    webhook           a signed POST
"""
