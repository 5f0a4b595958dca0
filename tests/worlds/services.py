"""Wrong worlds of the service: a few lines of SQL after a calm first audit, and the sentence that must be said.

The service has two tables, and its service.sql stays as it is. ``said`` is a regular expression for a sentence of
the next reading (a change, a note), of an error, or ``verdicts`` for what the next audit finds.
"""

from dataclasses import dataclass

TABLES = """
    CREATE TABLE svc.sale (id text PRIMARY KEY, grp text, payer boolean, sold timestamptz, done timestamptz);
    CREATE TABLE svc.doc (id uuid DEFAULT gen_random_uuid(), sale_id text, kind text, key text, at timestamptz);
    INSERT INTO svc.sale SELECT 'S-' || n, 'A', true, '2026-10-01 12:00Z', NULL FROM generate_series(1, 12) AS n;
    INSERT INTO svc.doc (sale_id, kind, key, at)
    SELECT 'S-' || n, kind, format('doc/%s-%s', n, kind), '2026-10-01 13:00Z'
    FROM generate_series(1, 12) AS n, unnest(ARRAY['DOC_CONTRATANTE', 'POV']) AS kind;
"""
"""Twelve sales with everything they need."""

STATEMENTS = """
-- name: sales
SELECT id, NULL AS client_id, grp AS utility_group, payer AS is_client_financial_responsible, NULL AS partner,
       sold AS created_at, done AS completed_at
FROM svc.sale;

-- name: records
SELECT id, sale_id, NULL AS file_name, NULL AS file_format, NULL AS type, kind AS evidence_type, key AS object_key,
       NULL AS requested_by, at AS requested_at, NULL AS expires_at
FROM svc.doc;

-- name: clients
SELECT NULL AS id, NULL AS external_id, NULL AS cpf, NULL AS rg, NULL AS number_on_dealership, NULL AS enrollment,
       NULL AS first_name, NULL AS last_name, NULL AS email, NULL AS birthdate, NULL AS phone_number,
       NULL AS created_at, NULL AS address_id, NULL AS neighborhood, NULL AS installation_number, NULL AS address,
       NULL AS address_number, NULL AS city, NULL AS zip_code
WHERE false;
"""


@dataclass(frozen=True)
class World:
    """A wrong world: ``sql`` makes it, ``said`` must be said.

    ``before`` builds the calm world otherwise, and ``reads`` are what the service.sql says instead of something
    else, ``then`` what it says so later. ``stops`` tells that nothing is observed any more, so that no other
    sentence can be said. ``verdict`` is part of the verdicts of the sales, written as ``S-1 incomplete AUT ...``.
    """

    name: str
    sql: str
    said: str
    stops: bool = False
    verdict: str = ""
    before: str = ""
    reads: tuple[str, str] = ("", "")
    then: tuple[str, str] = ("", "")


SEARCHED = "DO $$ BEGIN EXECUTE format('ALTER DATABASE %I SET search_path = svc', current_database()); END $$"
BY_FUNCTION = "CREATE FUNCTION svc.pays(sale svc.sale) RETURNS boolean LANGUAGE sql RETURN true"
ENUM = (
    "CREATE TYPE svc.kind AS ENUM ('POV', 'DOC_CONTRATANTE', 'AUT');"
    "ALTER TABLE svc.doc ALTER kind TYPE svc.kind USING kind::svc.kind"
)

ODD = {
    "TimeZone": "Asia/Kolkata",
    "IntervalStyle": "sql_standard",
    "bytea_output": "escape",
    "default_transaction_isolation": "serializable",
    "standard_conforming_strings": "off",
    "extra_float_digits": "0",
}
"""Settings that a role or a database may have, and that change nothing."""


def with_settings(**settings: str) -> str:
    each = "EXECUTE format('ALTER DATABASE %I SET {} = %L', current_database(), '{}');"
    return f"DO $$ BEGIN {''.join(each.format(name, value) for name, value in settings.items())} END $$"


TYPES = {
    "a code renamed": "'VOZ'",
    "a blank behind a code": "'POV '",
    "a blank behind a code that cannot be seen": "'POV' || chr(160)",
    "a code in small letters": "'pov'",
    "a code with a letter of another alphabet": "'P' || chr(1054) || 'V'",
    "a record without a type": "NULL",
}
GROUPS = {
    "a group that nobody knows": "'E'",
    "a sale without a group": "NULL",
    "the wrong group for everybody": "lower(grp)",
}

WORLDS = (
    *(
        World(
            name,
            f"UPDATE svc.doc SET kind = {value} WHERE kind = 'POV' AND sale_id = 'S-4'",
            r"Evidence records with an evidence_type that the contract does not know: 1; 0 at the last reading",
            verdict="S-4 incomplete POV TYPE_UNKNOWN",
        )
        for name, value in TYPES.items()
    ),
    *(
        World(
            name,
            f"UPDATE svc.sale SET grp = {value}" + ("" if "everybody" in name else " WHERE id = 'S-1'"),
            r"Sales with a utility_group that the contract does not know: 12?; 0 at the last reading",
            verdict="S-1 conflict  GROUP_UNKNOWN",
        )
        for name, value in GROUPS.items()
    ),
    World(
        "a column swapped under its name",
        "ALTER TABLE svc.sale RENAME payer TO payer_legacy; ALTER TABLE svc.sale ADD payer boolean;"
        "UPDATE svc.sale SET payer = false",
        r"The column payer of the table svc.sale is another column of the same name",
        verdict="S-1 incomplete AUT|DOC_RESPONSAVEL_FINANCEIRO",
    ),
    World(
        "a table swapped by renaming",
        "ALTER TABLE svc.doc RENAME TO doc_old; CREATE TABLE svc.doc (LIKE svc.doc_old);"
        "INSERT INTO svc.doc SELECT * FROM svc.doc_old WHERE sale_id <> 'S-2'",
        r"The table svc.doc is another table of the same name",
        verdict="S-2 incomplete POV|DOC_CONTRATANTE",
    ),
    World(
        "a KYC beside a renamed code",
        "UPDATE svc.doc SET kind = CASE kind WHEN 'POV' THEN 'AUDIO' ELSE 'KYC' END WHERE sale_id = 'S-1'",
        r"with an evidence_type that the contract does not know",
        verdict="S-1 conflict  TYPE_UNKNOWN",
    ),
    World(
        "a payer that is not said",
        "UPDATE svc.sale SET payer = NULL WHERE id = 'S-2'",
        r"Sales that do not say whether the client pays: 1",
        verdict="S-2 conflict  PAYER_UNKNOWN",
    ),
    World(
        "a soft-delete column",
        "ALTER TABLE svc.doc ADD deleted_at timestamptz;"
        "UPDATE svc.doc SET deleted_at = now() WHERE sale_id = 'S-1'",
        r"The table svc.doc has a new column deleted_at",
    ),
    World("a dropped column", "ALTER TABLE svc.sale DROP grp", r'column "grp" does not exist', stops=True),
    World(
        "a renamed column", "ALTER TABLE svc.doc RENAME kind TO tipo", r'column "kind" does not exist', stops=True
    ),
    World("a dropped table", "DROP TABLE svc.doc", r'relation "svc.doc" does not exist', stops=True),
    World("a renamed schema", "ALTER SCHEMA svc RENAME TO app", r'relation "svc.\w+" does not exist', stops=True),
    World(
        "a time that lost its zone",
        "ALTER TABLE svc.sale ALTER sold TYPE timestamp",
        r"created_at is of type timestamp without time zone, and timestamptz is expected",
        stops=True,
    ),
    World(
        "a payer that became a text",
        "ALTER TABLE svc.sale ALTER payer TYPE text",
        r"is_client_financial_responsible is of type text, and boolean is expected",
        stops=True,
    ),
    World(
        "a column of another type that is read all the same",
        "ALTER TABLE svc.sale ALTER grp TYPE varchar(1)",
        r"The column grp of the table svc.sale is character varying\(1\); it was text",
    ),
    World(
        "a record that names no sale",
        "INSERT INTO svc.doc (sale_id, kind, key, at) VALUES ('S-99', 'POV', 'doc/99', now())",
        r"Evidence records of no sale that is read: 1",
    ),
    World(
        "a record without a sale",
        "INSERT INTO svc.doc (kind, key, at) VALUES ('POV', 'doc/none', now())",
        r"Evidence records without sale_id or requested_at, set aside: 1",
    ),
    World(
        "a record without its time",
        "UPDATE svc.doc SET at = NULL WHERE sale_id = 'S-1' AND kind = 'POV'",
        r"Evidence records without sale_id or requested_at, set aside: 1",
    ),
    World(
        "a record without an id",
        "INSERT INTO svc.doc (id, sale_id, kind, key, at) VALUES (NULL, 'S-1', 'AUT', 'doc/no-id', now())",
        r"Evidence records without an id, set aside: 1",
    ),
    World(
        "a record twice",
        "INSERT INTO svc.doc SELECT * FROM svc.doc WHERE sale_id = 'S-6' AND kind = 'POV'",
        r"Evidence records with an id that others have, set aside: 2",
    ),
    World(
        "a key twice",
        "INSERT INTO svc.doc (sale_id, kind, key, at) VALUES ('S-1', 'POV', 'doc/2-POV', now())",
        r"Evidence records with an object_key that others have: 2",
    ),
    World(
        "a record without a key",
        "INSERT INTO svc.doc (sale_id, kind, at) VALUES ('S-1', 'AUT', now())",
        r"Evidence records without object_key: 1",
    ),
    World(
        "a sale without its time",
        "INSERT INTO svc.sale (id, grp, payer) VALUES ('S-77', 'A', true)",
        r"Sales without created_at, set aside: 1",
    ),
    World(
        "a sale twice",
        "ALTER TABLE svc.sale DROP CONSTRAINT sale_pkey;"
        "INSERT INTO svc.sale SELECT * FROM svc.sale WHERE id = 'S-6'",
        r"Sales with an id that others have, set aside: 2",
    ),
    World(
        "a sale without an id",
        "ALTER TABLE svc.sale DROP CONSTRAINT sale_pkey; ALTER TABLE svc.sale ALTER id DROP NOT NULL;"
        "INSERT INTO svc.sale (grp, payer, sold) VALUES ('A', true, now())",
        r"Sales without an id, set aside: 1",
    ),
    World(
        "an infinite time",
        "UPDATE svc.doc SET at = 'infinity' WHERE sale_id = 'S-1' AND kind = 'POV'",
        r"Sales and evidence records with an infinite time: 1",
    ),
    World(
        "a table that became a view",
        "ALTER TABLE svc.doc RENAME TO doc_all;"
        "CREATE VIEW svc.doc AS SELECT * FROM svc.doc_all WHERE kind <> 'POV'",
        r"The table svc.doc_all was not read before",
        verdict="S-1 incomplete POV",
    ),
    World(
        "a second table of documents, read by nobody",
        "CREATE TABLE svc.doc_2026 (LIKE svc.doc); INSERT INTO svc.doc_2026 SELECT * FROM svc.doc;"
        "DELETE FROM svc.doc WHERE sale_id = 'S-6'",
        r"",
        verdict="S-6 incomplete POV|DOC_CONTRATANTE",
    ),
    World(
        "a sale that was completed without its evidence",
        "DELETE FROM svc.doc WHERE sale_id = 'S-5' AND kind = 'POV';"
        "UPDATE svc.sale SET done = sold WHERE id = 'S-5'",
        r"",
        verdict="S-5 incomplete POV COMPLETED_WITHOUT_EVIDENCE",
    ),
    World(
        "labels of an enum that changed places",
        "ALTER TYPE svc.kind RENAME VALUE 'AUT' TO 'X'; ALTER TYPE svc.kind RENAME VALUE 'POV' TO 'AUT';"
        "ALTER TYPE svc.kind RENAME VALUE 'X' TO 'POV'",
        r"column kind of the table svc.doc is svc.kind \(AUT, DOC_CONTRATANTE, POV\); it was svc.kind \(POV, DOC",
        verdict="S-1 incomplete POV",
        before=ENUM,
    ),
    World(
        "codes of a lookup table that changed places",
        "UPDATE svc.kind SET code = CASE code WHEN 'POV' THEN 'AUT' ELSE 'POV' END",
        r"24 of 24 evidence records are read otherwise than at the last reading",
        verdict="S-1 incomplete POV|DOC_CONTRATANTE",
        before="CREATE TABLE svc.kind (id text, code text);"
        "INSERT INTO svc.kind VALUES ('POV', 'POV'), ('DOC_CONTRATANTE', 'DOC_CONTRATANTE')",
        reads=("kind AS evidence", "(SELECT code FROM svc.kind WHERE kind.id = doc.kind) AS evidence"),
    ),
    World(
        "a function that was replaced",
        "CREATE OR REPLACE FUNCTION svc.pays(sale svc.sale) RETURNS boolean LANGUAGE sql RETURN sale.id <> 'S-1'",
        r"The function svc.pays\(svc.sale\) was replaced by another one",
        verdict="S-1 incomplete AUT|DOC_RESPONSAVEL_FINANCEIRO",
        before=BY_FUNCTION,
        reads=("payer AS is", "svc.pays(sale) AS is"),
    ),
    World(
        "a generated column that follows another rule",
        "ALTER TABLE svc.sale ALTER payer SET EXPRESSION AS (id <> 'S-1')",
        r"The column payer of the table svc.sale is boolean = \(id <> 'S-1'::text\); it was boolean = \(id IS NOT",
        verdict="S-1 incomplete AUT|DOC_RESPONSAVEL_FINANCEIRO",
        before="ALTER TABLE svc.sale DROP payer, ADD payer boolean GENERATED ALWAYS AS (id IS NOT NULL) STORED",
    ),
    World(
        "a view that was replaced",
        "CREATE OR REPLACE VIEW svc.doc AS SELECT * FROM svc.doc_all WHERE key <> 'doc/1-POV'",
        r"The view svc.doc was replaced by another one",
        verdict="S-1 incomplete POV",
        before="ALTER TABLE svc.doc RENAME TO doc_all; CREATE VIEW svc.doc AS SELECT * FROM svc.doc_all",
    ),
    World(
        "NULLs in a filter",
        "UPDATE svc.sale SET state = NULL WHERE id IN ('S-1', 'S-2', 'S-3', 'S-4')",
        r"Rows that the statement sales leaves out: 4; 0 at the last reading",
        before="ALTER TABLE svc.sale ADD state text DEFAULT 'open'",
        reads=("FROM svc.sale;", "FROM svc.sale WHERE state <> 'cancelled';"),
    ),
    World(
        "a table that inherits from another",
        "CREATE TABLE svc.doc_more () INHERITS (svc.doc);"
        "INSERT INTO svc.doc_more (sale_id, kind, key, at) VALUES ('S-1', 'KYC', 'doc/2-POV', now())",
        r"The table svc.doc_more was not read before",
    ),
    World(
        "a partition that was detached",
        "ALTER TABLE svc.doc DETACH PARTITION svc.doc_of_one",
        r"The table svc.doc_of_one is no longer read",
        verdict="S-1 incomplete POV|DOC_CONTRATANTE",
        before="ALTER TABLE svc.doc RENAME TO old;"
        "CREATE TABLE svc.doc (LIKE svc.old) PARTITION BY LIST (sale_id);"
        "CREATE TABLE svc.doc_of_one PARTITION OF svc.doc FOR VALUES IN ('S-1');"
        "CREATE TABLE svc.doc_of_others PARTITION OF svc.doc DEFAULT; INSERT INTO svc.doc SELECT * FROM svc.old",
    ),
    World(
        "times in another zone",
        "UPDATE svc.sale SET sold = sold - interval '3 hours'",
        r"12 of 12 sales are read otherwise than at the last reading",
    ),
    World(
        "keys that changed",
        "UPDATE svc.doc SET key = replace(key, 'doc/', 'old/')",
        r"24 of 24 evidence records are read otherwise than at the last reading",
        verdict="S-1 incomplete POV|DOC_CONTRATANTE",
    ),
    World(
        "a sale named in other letters",
        "UPDATE svc.doc SET sale_id = lower(sale_id) WHERE sale_id = 'S-3'",
        r"Evidence records of no sale that is read: 2",
        verdict="S-3 incomplete POV|DOC_CONTRATANTE",
    ),
    World(
        "a number that is no id",
        "UPDATE svc.doc SET id = -1 WHERE sale_id = 'S-3' AND kind = 'POV'",
        r"Evidence records without an id, set aside: 1",
        before="ALTER TABLE svc.doc DROP id, ADD id bigint GENERATED BY DEFAULT AS IDENTITY",
    ),
    World(
        "a key of a document that was renamed",
        """UPDATE svc.doc SET facts = jsonb_build_object('tipo', kind) WHERE sale_id = 'S-3'""",
        r"Evidence records with an evidence_type that the contract does not know: [23]",
        verdict="S-3 incomplete POV|DOC_CONTRATANTE",
        before="ALTER TABLE svc.doc ADD facts jsonb; UPDATE svc.doc SET facts = jsonb_build_object('kind', kind)",
        reads=("kind AS evidence_type", "facts ->> 'kind' AS evidence_type"),
    ),
    World(
        "another search path",
        "CREATE SCHEMA other; CREATE TABLE other.doc AS SELECT * FROM svc.doc WHERE sale_id <> 'S-3';"
        "DO $$ BEGIN EXECUTE format('ALTER DATABASE %I SET search_path = other', current_database()); END $$",
        r"The table svc.doc is no longer read",
        verdict="S-3 incomplete POV|DOC_CONTRATANTE",
        before=SEARCHED,
        reads=("FROM svc.doc;", "FROM doc;"),
    ),
    World(
        "a table behind a part of a WITH of its name",
        "ALTER TABLE svc.doc RENAME TO doc_old;"
        "CREATE TABLE svc.doc AS SELECT * FROM svc.doc_old WHERE sale_id <> 'S-3'",
        r"The table svc.doc is another table of the same name",
        verdict="S-3 incomplete POV|DOC_CONTRATANTE",
        before=SEARCHED,
        reads=("FROM svc.doc;", "FROM (WITH doc AS (SELECT * FROM doc) SELECT * FROM doc) AS doc;"),
    ),
    World(
        "a label of an enum renamed",
        "ALTER TYPE svc.kind RENAME VALUE 'POV' TO 'VOZ'",
        r"Evidence records with an evidence_type that the contract does not know: 12; 0 at the last reading",
        verdict="S-1 incomplete POV TYPE_UNKNOWN",
        before=ENUM,
    ),
    World(
        "a blank behind the name of a sale",
        "UPDATE svc.doc SET sale_id = 'S-3 ' WHERE sale_id = 'S-3'",
        r"Evidence records of no sale that is read: 2",
        verdict="S-3 incomplete POV|DOC_CONTRATANTE",
    ),
    World(
        "a second table of sales",
        "CREATE TABLE svc.sale_2027 (LIKE svc.sale); INSERT INTO svc.sale_2027 VALUES ('N-1', 'A', true, now());"
        "INSERT INTO svc.doc (sale_id, kind, key, at) VALUES ('N-1', 'POV', 'doc/n-1', now())",
        r"Evidence records of no sale that is read: 1",
    ),
    World(
        "sales that somebody deleted, and their evidence left",
        "DELETE FROM svc.sale WHERE id IN ('S-1', 'S-2')",
        r"Evidence records of no sale that is read: 4",
    ),
    World(
        "everybody pays for somebody else",
        "UPDATE svc.sale SET payer = NOT payer",
        r"12 of 12 sales are read otherwise than at the last reading",
        verdict="S-1 incomplete AUT|DOC_RESPONSAVEL_FINANCEIRO",
    ),
    World(
        "every group is another one",
        "UPDATE svc.sale SET grp = 'B'",
        r"12 of 12 sales are read otherwise than at the last reading",
    ),
    World("all records gone", "DELETE FROM svc.doc", r"24 of the 24 evidence records .* gone at once", stops=True),
    World("all sales gone", "DELETE FROM svc.sale", r"12 of the 12 sales that were known are gone", stops=True),
    World(
        "every sale has another id",
        "UPDATE svc.sale SET id = 'X' || id",
        r"12 of the 12 sales that were known are gone at once",
        stops=True,
    ),
    World(
        "an id that is no uuid",
        "UPDATE svc.doc SET id = 'x' WHERE sale_id = 'S-3' AND kind = 'POV'",
        r"Evidence records without an id, set aside: 1",
        before="ALTER TABLE svc.doc ALTER id TYPE text",
    ),
    World(
        "a sale whose client is nowhere",
        "UPDATE svc.sale SET client = gen_random_uuid() WHERE id = 'S-1'",
        r"Sales of a client that is not read: 1",
        before="ALTER TABLE svc.sale ADD client uuid",
        reads=("NULL AS client_id", "client AS client_id"),
    ),
    World(
        "row level security",
        "ALTER TABLE svc.doc ENABLE ROW LEVEL SECURITY;CREATE POLICY own ON svc.doc USING (sale_id <> 'S-1')",
        r"The row level security of the table svc.doc is another one",
    ),
    World(
        "a policy that was replaced",
        "ALTER POLICY own ON svc.doc USING (sale_id <> 'S-1')",
        r"The row level security of the table svc.doc is another one",
        before="ALTER TABLE svc.doc ENABLE ROW LEVEL SECURITY; CREATE POLICY own ON svc.doc USING (true)",
    ),
    World(
        "a function that was dropped",
        "DROP FUNCTION svc.pays(svc.sale)",
        r"function svc.pays\(svc.sale\) does not exist",
        before=BY_FUNCTION,
        reads=("payer AS is", "svc.pays(sale) AS is"),
        stops=True,
    ),
    World(
        "two codes for one in a lookup table",
        "INSERT INTO svc.kind VALUES ('POV', 'AUT')",
        r"more than one row returned by a subquery",
        before="CREATE TABLE svc.kind AS SELECT DISTINCT kind AS id, kind AS code FROM svc.doc",
        reads=("kind AS evidence", "(SELECT code FROM svc.kind WHERE kind.id = doc.kind) AS evidence"),
        stops=True,
    ),
    World(
        "a join that gives a sale twice",
        "INSERT INTO svc.seller VALUES ('S-1', 'another')",
        r"Sales with an id that others have, set aside: 2",
        before="CREATE TABLE svc.seller AS SELECT id AS of, 'one' AS name FROM svc.sale",
        reads=("FROM svc.sale;", "FROM svc.sale JOIN svc.seller ON of = id;"),
    ),
    World(
        "a schema swapped by renaming",
        "ALTER SCHEMA svc RENAME TO old; CREATE SCHEMA svc; CREATE TABLE svc.sale AS SELECT * FROM old.sale;"
        "CREATE TABLE svc.doc AS SELECT * FROM old.doc WHERE sale_id <> 'S-2'",
        r"The table svc.doc is another table of the same name",
        verdict="S-2 incomplete POV|DOC_CONTRATANTE",
    ),
    World(
        "a name that is padded",
        "ALTER TABLE svc.doc ALTER kind TYPE char(60)",
        r"The column kind of the table svc.doc is character\(60\); it was text",
    ),
    World(
        "another file of SQL, with a filter",
        "SELECT 1",
        r"The service is read by another service.sql than at the last reading",
        then=("FROM svc.doc;", "FROM svc.doc WHERE sale_id <> 'S-3';"),
        verdict="S-3 incomplete POV|DOC_CONTRATANTE",
    ),
    World(
        "a code in the file that the contract does not know",
        "SELECT 1",
        r"evidence_type would become 'VOZ', which the contract does not know",
        then=("kind AS evidence", "CASE kind WHEN 'POV' THEN 'VOZ' END AS evidence"),
        stops=True,
    ),
    World(
        "a file that yields no payer",
        "SELECT 1",
        r"sales: does not yield is_client_financial_responsible",
        then=("payer AS is_client_financial_responsible", "payer"),
        stops=True,
    ),
    World(
        "a file that leaves the type out",
        "SELECT 1",
        r"records: evidence_type is NULL, and no audit can be made without it",
        then=("kind AS evidence_type", "NULL AS evidence_type"),
        stops=True,
    ),
    World(
        "sales that a join leaves out",
        "INSERT INTO svc.sale SELECT 'N-' || n, 'A', true, now() FROM generate_series(1, 5) AS n",
        r"Rows that the statement sales leaves out: 5; 0 at the last reading",
        before="CREATE TABLE svc.seller AS SELECT id AS of, 'one' AS name FROM svc.sale",
        reads=("FROM svc.sale;", "FROM svc.sale JOIN svc.seller ON of = id;"),
    ),
    World(
        "records that a join leaves out, whose table is named last",
        "INSERT INTO svc.doc (sale_id, kind, key, at) SELECT 'S-' || n, 'SELFIE', 'doc/s' || n, now()"
        "FROM generate_series(1, 5) AS n",
        r"Rows that the statement records leaves out: 5; 0 at the last reading",
        before="CREATE TABLE svc.kind AS SELECT DISTINCT kind AS code FROM svc.doc",
        reads=("FROM svc.doc;", "FROM svc.kind JOIN svc.doc ON kind = code;"),
    ),
    World(
        "sales that somebody deleted with their evidence",
        "DELETE FROM svc.doc WHERE sale_id IN ('S-1', 'S-2'); DELETE FROM svc.sale WHERE id IN ('S-1', 'S-2')",
        r"Sales that were known before and are gone: 2",
    ),
    World(
        "a filter that lets old sales go",
        "UPDATE svc.sale SET sold = now() - interval '99 days' WHERE id = 'S-1';"
        "DELETE FROM svc.doc WHERE sale_id = 'S-1'",
        r"Sales that were known before and are gone: 1",
        before="UPDATE svc.sale SET sold = now() - interval '2 days'",
        reads=("FROM svc.sale;", "FROM svc.sale WHERE sold > now() - interval '90 days';"),
    ),
    World(
        "a NULL in the filter of a view",
        "UPDATE svc.sale_all SET state = NULL WHERE id = 'S-1'; DELETE FROM svc.doc WHERE sale_id = 'S-1'",
        r"Sales that were known before and are gone: 1",
        before="ALTER TABLE svc.sale RENAME TO sale_all; ALTER TABLE svc.sale_all ADD state text DEFAULT 'open';"
        "CREATE VIEW svc.sale AS SELECT * FROM svc.sale_all WHERE state <> 'cancelled'",
    ),
    World(
        "a partner in other letters",
        "UPDATE svc.sale SET seller = 'ENERGIA  CERTA' WHERE id = 'S-1'",
        r"Sales whose partner others write with other capitals or blanks: 12; 0 at the last reading",
        before="ALTER TABLE svc.sale ADD seller text DEFAULT 'Energia Certa'",
        reads=("NULL AS partner", "seller AS partner"),
    ),
    World(
        "a year with a digit too many",
        "UPDATE svc.sale SET sold = '20026-10-01Z' WHERE id = 'S-1'",
        r"Sales and evidence records with a time in the future \(check its zone\): 1",
    ),
    World(
        "milliseconds taken for seconds",
        "UPDATE svc.doc SET ms = ms * 1000 WHERE sale_id = 'S-1'",
        r"Sales and evidence records with a time in the future \(check its zone\): 2",
        before="ALTER TABLE svc.doc ADD ms bigint; UPDATE svc.doc SET ms = extract(epoch FROM at)",
        reads=("at AS requested_at", "to_timestamp(ms) AS requested_at"),
    ),
    World(
        "a completion that never was",
        "UPDATE svc.sale SET done = '-infinity' WHERE id = 'S-1'",
        r"Sales and evidence records with an infinite time: 1",
    ),
    World(
        "a key of no letters",
        "UPDATE svc.doc SET key = '' WHERE sale_id = 'S-1' AND kind = 'POV'",
        r"Evidence records without object_key: 1",
        verdict="S-1 incomplete POV",
    ),
    World(
        "a number written with a fraction",
        "INSERT INTO svc.doc (sale_id, kind, key, at) VALUES (1.0, 'KYC', 'doc/k', now())",
        r"Evidence records of no sale that is read: 1",
        before="ALTER TABLE svc.sale ALTER id TYPE numeric USING substr(id, 3)::numeric;"
        "ALTER TABLE svc.doc ALTER sale_id TYPE numeric USING substr(sale_id, 3)::numeric",
    ),
    World(
        "the same number at another tenant",
        "INSERT INTO svc.sale SELECT id, grp, false, sold, done, 2 FROM svc.sale WHERE id = 'S-1'",
        r"Sales with an id that others have, set aside: 2",
        before="ALTER TABLE svc.sale DROP CONSTRAINT sale_pkey, ADD tenant integer DEFAULT 1",
    ),
    World(
        "rows of a child, where the parent alone is read",
        "CREATE TABLE svc.doc_more () INHERITS (svc.doc); INSERT INTO svc.doc_more (sale_id, kind, key, at)"
        "SELECT 'S-' || n, 'KYC', 'doc/k' || n, now() FROM generate_series(1, 5) AS n",
        r"Rows that the statement records leaves out: 5; 0 at the last reading",
        reads=("FROM svc.doc;", "FROM ONLY svc.doc;"),
    ),
    World(
        "one record of each type alone",
        "INSERT INTO svc.doc (sale_id, kind, key, at) SELECT sale_id, 'POV ', key || 2, at FROM svc.doc"
        " WHERE kind = 'POV'",
        r"Rows that the statement records leaves out: 12; 0 at the last reading",
        reads=("SELECT id, sale_id", "SELECT DISTINCT ON (sale_id, trim(kind)) id, sale_id"),
    ),
    World(
        "a value of JSON that is null",
        """UPDATE svc.doc SET facts = '{"kind": null}' WHERE sale_id = 'S-3' AND kind = 'POV'""",
        r"Evidence records with an evidence_type that the contract does not know: 1",
        verdict="S-3 incomplete POV TYPE_UNKNOWN",
        before="ALTER TABLE svc.doc ADD facts jsonb; UPDATE svc.doc SET facts = jsonb_build_object('kind', kind)",
        reads=("kind AS evidence_type", "facts ->> 'kind' AS evidence_type"),
    ),
    World(
        "a record in two partitions",
        "CREATE TABLE svc.doc_again PARTITION OF svc.doc FOR VALUES IN ('S-2'); INSERT INTO svc.doc"
        " SELECT id, 'S-2', kind, key, at FROM svc.doc WHERE sale_id = 'S-1'",
        r"Evidence records with an id that others have, set aside: 4",
        before="ALTER TABLE svc.doc RENAME TO old;"
        "CREATE TABLE svc.doc (LIKE svc.old) PARTITION BY LIST (sale_id);"
        "CREATE TABLE svc.doc_1 PARTITION OF svc.doc FOR VALUES IN ('S-1'); INSERT INTO svc.doc"
        " SELECT * FROM svc.old WHERE sale_id = 'S-1'; DELETE FROM svc.sale WHERE id <> 'S-1'",
    ),
    *(
        World(
            f"settings of the database such as {style}",
            "DELETE FROM svc.doc WHERE sale_id = 'S-1' AND kind = 'POV'",
            r"",
            verdict="S-1 incomplete POV",
            before=with_settings(DateStyle=style, **ODD),
        )
        for style in ("SQL, DMY", "Postgres, MDY")
    ),
)
