"""What changed in a service between two readings of it, each as the template of its sentence."""

from enum import StrEnum


class ServiceChange(StrEnum):
    """A change of which an audit and its reports tell; the values are the template's."""

    STATEMENTS = "The service is read by another service.sql than at the last reading."
    TABLE_UNREAD = "The table {} is no longer read."
    VIEW_UNREAD = "The view {} is no longer read."
    FUNCTION_UNREAD = "The function {} is no longer read."
    TABLE_NEW = "The table {} was not read before."
    VIEW_NEW = "The view {} was not read before."
    FUNCTION_NEW = "The function {} was not read before."
    VIEW_REPLACED = "The view {} was replaced by another one."
    FUNCTION_REPLACED = "The function {} was replaced by another one."
    POLICY_REPLACED = "The row level security of the table {} is another one."
    TABLE_REPLACED = "The table {} is another table of the same name than at the last reading."
    COLUMN_NEW = "The table {} has a new column {}."
    COLUMN_LOST = "The table {} has lost the column {}."
    COLUMN_REPLACED = "The column {} of the table {} is another column of the same name."
    COLUMN_CHANGED = "The column {} of the table {} is {}; it was {}."
    SALES_CHANGED = "{:,} of {:,} sales are read otherwise than at the last reading."
    RECORDS_CHANGED = "{:,} of {:,} evidence records are read otherwise than at the last reading."
    RESTORED = (
        "The database was restored from an older dump, which was noticed at {} UTC: what was written between the "
        "dump and the restore, such as withdrawals and waivers, is gone. Find out what happened, and let two "
        "people confirm it: toolkit db confirm-restore"
    )
    JUMPED = "{}; {} at the last reading."
    """The sentence of a count, without its full stop, and the count before."""
