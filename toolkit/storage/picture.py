"""The age of the picture of the bucket, as SQL."""

from typing import Final

PICTURE_SINCE: Final = """
    CASE
        WHEN cycle IS NULL THEN (
            SELECT max(started_at) FROM audit.bucket_syncs AS earlier
            WHERE earlier.id <= bucket_syncs.id AND earlier.full_listing
        )
        WHEN read_to IS NULL THEN (
            SELECT min(started_at) FROM audit.bucket_syncs AS earlier
            WHERE earlier.id <= bucket_syncs.id AND earlier.cycle = bucket_syncs.cycle
        )
        ELSE (
            SELECT min(started_at) FROM audit.bucket_syncs AS earlier
            WHERE earlier.id <= bucket_syncs.id
              AND earlier.cycle = bucket_syncs.cycle - 1
              AND (earlier.read_to IS NULL OR earlier.read_to COLLATE "C" > bucket_syncs.read_to)
        )
    END
"""
"""When that part of the bucket was read that had waited longest, as of a row of ``audit.bucket_syncs``."""
