"""Send a notice by e-mail, over TLS unless the server is on this machine."""

import smtplib
import ssl
from email.message import EmailMessage
from typing import Final
from uuid import UUID

from toolkit.entrypoints.jobs.notices.notice_settings import EmailSettings, Security
from toolkit.entrypoints.jobs.notices.texts import NoticeText

_TIMEOUT: Final = 30


def send_email(settings: EmailSettings, notice: UUID, text: NoticeText) -> str | None:
    """Send the text to all recipients; return the problem, or ``None`` where it was sent.

    The problem names no address: the server's own words may quote one.
    """
    try:
        with _connected(settings) as server:
            if settings.user is not None and settings.password is not None:
                server.login(settings.user, settings.password)
            refused = server.send_message(_message(settings, notice, text))
    except smtplib.SMTPResponseException as error:
        return f"{type(error).__name__}: the mail server answered {error.smtp_code}"
    except (smtplib.SMTPException, OSError) as error:
        return type(error).__name__
    return f"the mail server refused {len(refused)} recipients" if refused else None


def _connected(settings: EmailSettings) -> smtplib.SMTP:
    trusted = ssl.create_default_context(cafile=settings.ca_file)
    if settings.security is Security.TLS:
        return smtplib.SMTP_SSL(settings.host, settings.port, timeout=_TIMEOUT, context=trusted)
    server = smtplib.SMTP(settings.host, settings.port, timeout=_TIMEOUT)
    try:
        if settings.security is Security.STARTTLS:
            server.starttls(context=trusted)  # a server that does not offer it is an error
    except BaseException:
        server.close()
        raise
    return server


def _message(settings: EmailSettings, notice: UUID, text: NoticeText) -> EmailMessage:
    message = EmailMessage()
    message["Subject"] = text.subject
    message["From"] = settings.sender
    message["To"] = ", ".join(settings.recipients)
    # The same for each try, so that a mail that came twice can be known.
    message["Message-ID"] = f"<{notice}@{settings.sender.rpartition('@')[2]}>"
    message["Auto-Submitted"] = "auto-generated"
    message.set_content(text.body)
    return message
