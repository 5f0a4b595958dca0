"""Take over what Amazon S3 delivers about a bucket, so that a large one need not be listed.

::

    inventory     S3 Inventory (Parquet, ORC or CSV), or a copy of the live inventory table of S3 Metadata
    journal       the journal table of S3 Metadata: each write and deletion, with the requester and the address
    differences   what was delivered beside what is known, on DuckDB; what contradicts is asked for one by one
    copying       rows from PostgreSQL to DuckDB and back
    taking_over   the differences become observations, on the same path as those of a listing

What is delivered is older than now. It never undoes what was observed later, and the picture is as old as it says.
"""

from toolkit.operations.observe.delivered.inventory import Inventory, find_inventory
from toolkit.operations.observe.delivered.journal import Journal, find_journal
from toolkit.operations.observe.delivered.taking_over import TakenOver, take_over

__all__ = ["Inventory", "Journal", "TakenOver", "find_inventory", "find_journal", "take_over"]
