"""Read a sales service's own tables: a mapping file describes them, and views in ``audit_service`` present them.

::

    model           the mapping file: relations, and where each of their columns comes from
    file_lines      the lines of the file, for messages about it
    expressions     a column of the mapping as SQL, for reading
    views           the views, made again when the file changes
    obstacles       what stands in the way of writing a relation to its table
    triggers        the triggers that write through the views
    writing         what commands that write ask beforehand
    catalog         the tables and columns of a database, as PostgreSQL describes them
    draft           a first mapping for a database that nobody has described yet
    proof           what is wrong with the data as the mapping shows them
"""

from toolkit.storage.service_map.model import ServiceMap, load_map

__all__ = ["ServiceMap", "load_map"]
