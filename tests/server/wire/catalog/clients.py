"""What clients ask about the catalog, as they write it, and what they must get for `test_engine`'s tables."""

from __future__ import annotations

from typing import Any

Asked = tuple[str, str, list[tuple[Any, ...]]]

# The metadata that pgcli completes names with (pgcli/pgexecute.py), and \l and \dD of its own (pgspecial).
PGCLI: list[Asked] = [
    ("search path", "SELECT * FROM unnest(current_schemas(true))", [("pg_catalog",), ("public",)]),
    (
        "columns of tables",
        """SELECT  nsp.nspname schema_name, cls.relname table_name, att.attname column_name,
             att.atttypid::regtype::text type_name, att.atthasdef AS has_default,
             pg_catalog.pg_get_expr(def.adbin, def.adrelid, true) as default
           FROM pg_catalog.pg_attribute att
             INNER JOIN pg_catalog.pg_class cls ON att.attrelid = cls.oid
             INNER JOIN pg_catalog.pg_namespace nsp ON cls.relnamespace = nsp.oid
             LEFT OUTER JOIN pg_attrdef def ON def.adrelid = att.attrelid AND def.adnum = att.attnum
           WHERE cls.relkind = ANY('{r,p,f}') AND NOT att.attisdropped AND att.attnum  > 0
           ORDER BY 1, 2, att.attnum""",
        [
            ("public", "Clicks", "x", "integer", False, None),
            ("public", "orders", "id", "bigint", False, None),
            ("public", "orders", "price", "numeric", False, None),
            ("public", "orders", "at", "timestamp with time zone", False, None),
            ("public", "orders", "Tags", "text[]", False, None),
        ],
    ),
    (
        "how words are written",
        r"""WITH Words AS (
              SELECT regexp_split_to_table(prosrc, '\W+') AS Word, COUNT(1)
              FROM pg_catalog.pg_proc P
              JOIN pg_catalog.pg_namespace N ON N.oid = P.pronamespace
              JOIN pg_catalog.pg_language L ON L.oid = P.prolang
              WHERE L.lanname IN ('sql', 'plpgsql')
              AND N.nspname NOT IN ('pg_catalog', 'information_schema')
              GROUP BY Word
            ),
            OrderWords AS (
              SELECT Word, ROW_NUMBER() OVER(PARTITION BY LOWER(Word) ORDER BY Count DESC)
              FROM Words WHERE Word ~* '.*[a-z].*'
            ),
            Names AS (
              --Column names
              SELECT attname AS Name FROM pg_catalog.pg_attribute
              UNION -- Table/view names
              SELECT relname FROM pg_catalog.pg_class
              UNION -- Parameter names
              SELECT unnest(proargnames) FROM pg_proc
            )
            SELECT Word FROM OrderWords
            WHERE LOWER(Word) IN (SELECT Name FROM Names) AND Row_Number = 1""",
        [],
    ),
    (
        "foreign keys",
        """SELECT s_p.nspname AS parentschema, t_p.relname AS parenttable,
             unnest((select array_agg(attname ORDER BY i)
               from (select unnest(confkey) as attnum, generate_subscripts(confkey, 1) as i) x
                 JOIN pg_catalog.pg_attribute c USING(attnum) WHERE c.attrelid = fk.confrelid
             )) AS parentcolumn,
             s_c.nspname AS childschema, t_c.relname AS childtable,
             unnest((select array_agg(attname ORDER BY i)
               from (select unnest(conkey) as attnum, generate_subscripts(conkey, 1) as i) x
                 JOIN pg_catalog.pg_attribute c USING(attnum) WHERE c.attrelid = fk.conrelid
             )) AS childcolumn
           FROM pg_catalog.pg_constraint fk
             JOIN pg_catalog.pg_class      t_p ON t_p.oid = fk.confrelid
             JOIN pg_catalog.pg_namespace  s_p ON s_p.oid = t_p.relnamespace
             JOIN pg_catalog.pg_class      t_c ON t_c.oid = fk.conrelid
             JOIN pg_catalog.pg_namespace  s_c ON s_c.oid = t_c.relnamespace
           WHERE fk.contype = 'f'""",
        [],
    ),
    (
        "databases",
        r"""SELECT d.datname as name, pg_catalog.pg_get_userbyid(d.datdba) as owner,
              pg_catalog.pg_encoding_to_char(d.encoding) as encoding, d.datcollate as collate,
              d.datctype as ctype, pg_catalog.array_to_string(d.datacl, E'\n') AS access_privileges
            FROM pg_catalog.pg_database d ORDER BY 1""",
        [("headwater", "me", "UTF8", "C.UTF-8", "C.UTF-8", None)],
    ),
    (
        "a view's definition",
        """WITH v AS (SELECT 'public.totals'::pg_catalog.regclass::pg_catalog.oid AS v_oid)
           SELECT nspname, relname, relkind, pg_catalog.pg_get_viewdef(c.oid, true),
             array_remove(array_remove(c.reloptions,'check_option=local'),
               'check_option=cascaded') AS reloptions,
             CASE WHEN 'check_option=local' = ANY (c.reloptions) THEN 'LOCAL'::text
               WHEN 'check_option=cascaded' = ANY (c.reloptions) THEN 'CASCADED'::text
               ELSE NULL END AS checkoption
           FROM pg_catalog.pg_class c
             LEFT JOIN pg_catalog.pg_namespace n ON (c.relnamespace = n.oid)
             JOIN v ON (c.oid = v.v_oid)""",
        [("public", "totals", "v", "SELECT 1", None, None)],
    ),
]

# DatabaseMetaData of PgJDBC, as its 42.7 writes it for a server of version 14.
JDBC: list[Asked] = [
    (
        "getTables",
        """SELECT current_database() AS "TABLE_CAT", n.nspname AS "TABLE_SCHEM", c.relname AS "TABLE_NAME",
             CASE n.nspname ~ '^pg_' OR n.nspname = 'information_schema'
             WHEN true THEN CASE
               WHEN n.nspname = 'pg_catalog' OR n.nspname = 'information_schema' THEN CASE c.relkind
                 WHEN 'r' THEN 'SYSTEM TABLE' WHEN 'v' THEN 'SYSTEM VIEW' WHEN 'i' THEN 'SYSTEM INDEX'
                 ELSE NULL END
               WHEN n.nspname = 'pg_toast' THEN CASE c.relkind
                 WHEN 'r' THEN 'SYSTEM TOAST TABLE' WHEN 'i' THEN 'SYSTEM TOAST INDEX' ELSE NULL END
               ELSE CASE c.relkind WHEN 'r' THEN 'TEMPORARY TABLE' WHEN 'v' THEN 'TEMPORARY VIEW'
                 ELSE NULL END
               END
             WHEN false THEN CASE c.relkind
               WHEN 'r' THEN 'TABLE' WHEN 'p' THEN 'PARTITIONED TABLE' WHEN 'i' THEN 'INDEX'
               WHEN 'P' then 'PARTITIONED INDEX' WHEN 'S' THEN 'SEQUENCE' WHEN 'v' THEN 'VIEW'
               WHEN 'c' THEN 'TYPE' WHEN 'f' THEN 'FOREIGN TABLE' WHEN 'm' THEN 'MATERIALIZED VIEW'
               ELSE NULL END
             ELSE NULL END AS "TABLE_TYPE", d.description AS "REMARKS",
             '' as "TYPE_CAT", '' as "TYPE_SCHEM", '' as "TYPE_NAME",
             '' AS "SELF_REFERENCING_COL_NAME", '' AS "REF_GENERATION"
           FROM pg_catalog.pg_namespace n, pg_catalog.pg_class c
             LEFT JOIN pg_catalog.pg_description d
               ON (c.oid = d.objoid AND d.objsubid = 0  and d.classoid = 'pg_class'::regclass)
           WHERE c.relnamespace = n.oid  AND (false
             OR ( c.relkind = 'r' AND n.nspname !~ '^pg_' AND n.nspname <> 'information_schema' )
             OR ( c.relkind = 'v' AND n.nspname <> 'pg_catalog' AND n.nspname <> 'information_schema' ) )
           ORDER BY "TABLE_TYPE","TABLE_SCHEM","TABLE_NAME\"""",
        [
            ("headwater", "public", "orders", "TABLE", "streaming table", "", "", "", "", ""),
            ("headwater", "public", "totals", "VIEW", "view", "", "", "", "", ""),
        ],
    ),
    (
        "getColumns",
        """SELECT * FROM (SELECT current_database() AS current_database, n.nspname,c.relname,a.attname,
             a.atttypid,a.attnotnull OR (t.typtype = 'd' AND t.typnotnull) AS attnotnull,a.atttypmod,
             a.attlen,t.typtypmod,row_number() OVER (PARTITION BY a.attrelid ORDER BY a.attnum) AS attnum,
             nullif(a.attidentity, '') as attidentity,nullif(a.attgenerated, '') as attgenerated,
             pg_catalog.pg_get_expr(def.adbin, def.adrelid) AS adsrc,dsc.description,t.typbasetype,t.typtype
           FROM pg_catalog.pg_namespace n
             JOIN pg_catalog.pg_class c ON (c.relnamespace = n.oid)
             JOIN pg_catalog.pg_attribute a ON (a.attrelid=c.oid)
             JOIN pg_catalog.pg_type t ON (a.atttypid = t.oid)
             LEFT JOIN pg_catalog.pg_attrdef def ON (a.attrelid=def.adrelid AND a.attnum = def.adnum)
             LEFT JOIN pg_catalog.pg_description dsc ON (c.oid=dsc.objoid AND a.attnum = dsc.objsubid)
             LEFT JOIN pg_catalog.pg_class dc ON (dc.oid=dsc.classoid AND dc.relname='pg_class')
             LEFT JOIN pg_catalog.pg_namespace dn ON (dc.relnamespace=dn.oid AND dn.nspname='pg_catalog')
           WHERE c.relkind in ('r','p','v','f','m') and a.attnum > 0 AND NOT a.attisdropped
             AND n.nspname LIKE 'public' AND c.relname LIKE 'orders') c
           WHERE true  AND attname LIKE '%'  ORDER BY nspname,c.relname,attnum""",
        [
            ("headwater", "public", "orders", "id", 20, True, -1, 8, -1, 1, *[None] * 4, 0, "b"),
            (
                "headwater",
                "public",
                "orders",
                "price",
                1700,
                False,
                655366,
                -1,
                -1,
                2,
                *[None] * 4,
                0,
                "b",
            ),
            ("headwater", "public", "orders", "at", 1184, False, -1, 8, -1, 3, *[None] * 4, 0, "b"),
            (
                "headwater",
                "public",
                "orders",
                "Tags",
                1009,
                False,
                -1,
                -1,
                -1,
                4,
                *[None] * 4,
                0,
                "b",
            ),
        ],
    ),
    (
        "getPrimaryKeys",
        """SELECT result."TABLE_CAT", result."TABLE_SCHEM", result."TABLE_NAME", result."COLUMN_NAME",
             result."KEY_SEQ", result."PK_NAME"
           FROM (SELECT current_database() AS "TABLE_CAT", n.nspname AS "TABLE_SCHEM",
             ct.relname AS "TABLE_NAME", a.attname AS "COLUMN_NAME",
             (information_schema._pg_expandarray(i.indkey)).n AS "KEY_SEQ", ci.relname AS "PK_NAME",
             information_schema._pg_expandarray(i.indkey) AS "KEYS", a.attnum AS "A_ATTNUM",
             i.indnkeyatts as KEY_COUNT
           FROM pg_catalog.pg_class ct
             JOIN pg_catalog.pg_attribute a ON (ct.oid = a.attrelid)
             JOIN pg_catalog.pg_namespace n ON (ct.relnamespace = n.oid)
             JOIN pg_catalog.pg_index i ON ( a.attrelid = i.indrelid)
             JOIN pg_catalog.pg_class ci ON (ci.oid = i.indexrelid)
           WHERE true  AND n.nspname = 'public' AND ct.relname = 'orders' AND i.indisprimary  ) result
           where result."A_ATTNUM" = (result."KEYS").x  AND result."KEY_SEQ" <= KEY_COUNT
           ORDER BY result."TABLE_NAME", result."PK_NAME", result."KEY_SEQ\"""",
        [],
    ),
    (
        "getIndexInfo",
        """SELECT tmp."TABLE_CAT", tmp."TABLE_SCHEM", tmp."TABLE_NAME", tmp."NON_UNIQUE",
             tmp."INDEX_QUALIFIER", tmp."INDEX_NAME", tmp."TYPE", tmp."ORDINAL_POSITION",
             trim(both '"' from pg_catalog.pg_get_indexdef(tmp.CI_OID, tmp."ORDINAL_POSITION", false))
               AS "COLUMN_NAME",
             CASE tmp.AM_NAME WHEN 'btree' THEN CASE tmp.I_INDOPTION[tmp."ORDINAL_POSITION" - 1] & 1::smallint
               WHEN 1 THEN 'D' ELSE 'A' END ELSE NULL END AS "ASC_OR_DESC",
             tmp."CARDINALITY", tmp."PAGES", tmp."FILTER_CONDITION"
           FROM ( SELECT current_database() AS "TABLE_CAT", n.nspname AS "TABLE_SCHEM",
             ct.relname AS "TABLE_NAME", NOT i.indisunique AS "NON_UNIQUE", NULL AS "INDEX_QUALIFIER",
             ci.relname AS "INDEX_NAME",
             CASE i.indisclustered WHEN true THEN 1 ELSE CASE am.amname WHEN 'hash' THEN 2 ELSE 3 END END
               AS "TYPE",
             (information_schema._pg_expandarray(i.indkey)).n AS "ORDINAL_POSITION",
             ci.reltuples AS "CARDINALITY", ci.relpages AS "PAGES",
             pg_catalog.pg_get_expr(i.indpred, i.indrelid) AS "FILTER_CONDITION", ci.oid AS CI_OID,
             i.indoption AS I_INDOPTION, am.amname AS AM_NAME
           FROM pg_catalog.pg_class ct
             JOIN pg_catalog.pg_namespace n ON (ct.relnamespace = n.oid)
             JOIN pg_catalog.pg_index i ON (ct.oid = i.indrelid)
             JOIN pg_catalog.pg_class ci ON (ci.oid = i.indexrelid)
             JOIN pg_catalog.pg_am am ON (ci.relam = am.oid)
           WHERE true  AND n.nspname = 'public' AND ct.relname = 'orders') AS tmp
           ORDER BY "NON_UNIQUE", "TYPE", "INDEX_NAME", "ORDINAL_POSITION\"""",
        [],
    ),
    (
        "getImportedKeys",
        """SELECT NULL::text AS "PKTABLE_CAT", pkn.nspname AS "PKTABLE_SCHEM", pkc.relname AS "PKTABLE_NAME",
             pka.attname AS "PKCOLUMN_NAME", fkc.relname AS "FKTABLE_NAME", pos.n AS "KEY_SEQ",
             CASE con.confupdtype WHEN 'c' THEN 0 WHEN 'n' THEN 2 ELSE NULL END AS "UPDATE_RULE",
             con.conname AS "FK_NAME", pkic.relname AS "PK_NAME",
             CASE WHEN con.condeferrable AND con.condeferred THEN 5 WHEN con.condeferrable THEN 6 ELSE 7 END
               AS "DEFERRABILITY"
           FROM pg_catalog.pg_namespace pkn, pg_catalog.pg_class pkc, pg_catalog.pg_attribute pka,
             pg_catalog.pg_namespace fkn, pg_catalog.pg_class fkc, pg_catalog.pg_attribute fka,
             pg_catalog.pg_constraint con, pg_catalog.generate_series(1, 32) pos(n),
             pg_catalog.pg_class pkic
           WHERE pkn.oid = pkc.relnamespace AND pkc.oid = pka.attrelid AND pka.attnum = con.confkey[pos.n]
             AND con.confrelid = pkc.oid  AND fkn.oid = fkc.relnamespace AND fkc.oid = fka.attrelid
             AND fka.attnum = con.conkey[pos.n] AND con.conrelid = fkc.oid  AND con.contype = 'f'
             AND (pkic.relkind = 'i' OR pkic.relkind = 'I') AND pkic.oid = con.conindid
             AND fkc.relname = 'orders' ORDER BY pkn.nspname,pkc.relname, con.conname,pos.n""",
        [],
    ),
    (
        "getSchemas",
        """SELECT nspname AS "TABLE_SCHEM", current_database() AS "TABLE_CATALOG" FROM pg_catalog.pg_namespace
           WHERE nspname <> 'pg_toast' AND (nspname !~ '^pg_temp_'
             OR nspname = (pg_catalog.current_schemas(true))[1]) AND (nspname !~ '^pg_toast_temp_'
             OR nspname = replace((pg_catalog.current_schemas(true))[1], 'pg_temp_', 'pg_toast_temp_'))
           ORDER BY "TABLE_SCHEM\"""",
        [("information_schema", "headwater"), ("pg_catalog", "headwater"), ("public", "headwater")],
    ),
    (
        "getCatalogs",
        'SELECT datname AS "TABLE_CAT" FROM pg_catalog.pg_database WHERE datallowconn = true'
        " ORDER BY datname",
        [("headwater",)],
    ),
    (
        "a type by its name",
        """SELECT typinput='pg_catalog.array_in'::regproc as is_array, typtype, typname, pg_type.oid
           FROM pg_catalog.pg_type
             LEFT JOIN (select ns.oid as nspoid, ns.nspname, r.r from pg_namespace as ns
               join ( select s.r, (current_schemas(false))[s.r] as nspname
                 from generate_series(1, array_upper(current_schemas(false), 1)) as s(r) ) as r
               using ( nspname ) ) as sp ON sp.nspoid = typnamespace
           WHERE typname = '_int4' ORDER BY sp.r, pg_type.oid DESC LIMIT 1""",
        [(True, "b", "_int4", 1007)],
    ),
    (
        "a type by its number",
        """SELECT n.nspname = ANY(current_schemas(true)), n.nspname, t.typname FROM pg_catalog.pg_type t
             JOIN pg_catalog.pg_namespace n ON t.typnamespace = n.oid WHERE t.oid = 1184""",
        [(True, "pg_catalog", "timestamptz")],
    ),
    (
        "an array's element",
        """SELECT e.oid, n.nspname = ANY(current_schemas(true)), n.nspname, e.typname
           FROM pg_catalog.pg_type t JOIN pg_catalog.pg_type e ON t.typelem = e.oid
             JOIN pg_catalog.pg_namespace n ON t.typnamespace = n.oid WHERE t.oid = 1007""",
        [(23, True, "pg_catalog", "int4")],
    ),
    (
        "getTypeInfo",
        """SELECT t.typname,t.oid FROM pg_catalog.pg_type t
             JOIN pg_catalog.pg_namespace n ON (t.typnamespace = n.oid)
           WHERE n.nspname  != 'pg_toast' AND  (t.typrelid = 0
             OR (SELECT c.relkind = 'c' FROM pg_catalog.pg_class c WHERE c.oid = t.typrelid))
             AND t.typname IN ('int4', 'text', 'timestamptz') ORDER BY 2""",
        [("int4", 23), ("text", 25), ("timestamptz", 1184)],
    ),
    (
        "columns of a result",
        """SELECT c.oid, a.attnum, a.attname, c.relname, n.nspname, a.attnotnull OR (t.typtype = 'd'
             AND t.typnotnull), a.attidentity != '' OR pg_catalog.pg_get_expr(d.adbin, d.adrelid)
             LIKE '%nextval(%'
           FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON (c.relnamespace = n.oid)
             JOIN pg_catalog.pg_attribute a ON (c.oid = a.attrelid)
             JOIN pg_catalog.pg_type t ON (a.atttypid = t.oid)
             LEFT JOIN pg_catalog.pg_attrdef d ON (d.adrelid = a.attrelid AND d.adnum = a.attnum)
             JOIN (SELECT 16385 AS oid , 1 AS attnum UNION ALL SELECT 16385, 3) vals
               ON (c.oid = vals.oid AND a.attnum = vals.attnum)""",
        [
            (16385, 1, "id", "orders", "public", True, None),
            (16385, 3, "at", "orders", "public", False, None),
        ],
    ),
    (
        "getMaxColumnNameLength",
        """SELECT t.typlen FROM pg_catalog.pg_type t, pg_catalog.pg_namespace n
           WHERE t.typnamespace=n.oid AND t.typname='name' AND n.nspname='pg_catalog'""",
        [(64,)],
    ),
    (
        "getMaxIndexKeys",
        "SELECT setting FROM pg_catalog.pg_settings WHERE name='max_index_keys'",
        [("32",)],
    ),
    (
        "getSQLKeywords",
        """select string_agg(word, ',') from pg_catalog.pg_get_keywords()
           where word <> ALL ('{a,abs,absolute}'::text[])""",
        [("advance,continuous,cut,emit,landmark,sample,sink,subscribe",)],
    ),
    (
        "getFunctions",
        """SELECT current_database() AS "FUNCTION_CAT", n.nspname AS "FUNCTION_SCHEM",
             p.proname AS "FUNCTION_NAME", d.description AS "REMARKS",
             CASE WHEN (format_type(p.prorettype, null) = 'unknown') THEN 0
               WHEN (substring(pg_get_function_result(p.oid) from 0 for 6) = 'TABLE') OR
                 (substring(pg_get_function_result(p.oid) from 0 for 6) = 'SETOF') THEN 2 ELSE 1 END
               AS "FUNCTION_TYPE", p.proname || '_' || p.oid AS "SPECIFIC_NAME"
           FROM pg_catalog.pg_proc p INNER JOIN pg_catalog.pg_namespace n ON p.pronamespace=n.oid
             LEFT JOIN pg_catalog.pg_description d ON p.oid=d.objoid
           WHERE true AND p.prokind='f' AND n.nspname LIKE 'public'
           ORDER BY "FUNCTION_SCHEM", "FUNCTION_NAME", p.oid::text""",
        [],
    ),
]

_SEARCH_PATH = """
  SELECT CASE WHEN trim(s[i]) = '"$user"' THEN user ELSE trim(s[i]) END
  FROM generate_series(
    array_lower(string_to_array(current_setting('search_path'),','),1),
    array_upper(string_to_array(current_setting('search_path'),','),1)) as i,
    string_to_array(current_setting('search_path'),',') s
"""
# The query editor and the health check of Grafana's PostgreSQL source.
GRAFANA: list[Asked] = [
    ("version", "SELECT current_setting('server_version_num')::int/100", [(1400,)]),
    ("TimescaleDB", "SELECT extversion FROM pg_extension WHERE extname = 'timescaledb'", []),
    (
        "tables",
        f"""SELECT CASE WHEN quote_ident(table_schema) IN ({_SEARCH_PATH}) THEN quote_ident(table_name)
              ELSE quote_ident(table_schema) || '.' || quote_ident(table_name) END AS "table"
            FROM information_schema.tables
            WHERE quote_ident(table_schema) NOT IN ('information_schema', 'pg_catalog',
              '_timescaledb_cache', '_timescaledb_catalog', '_timescaledb_internal',
              '_timescaledb_config', 'timescaledb_information', 'timescaledb_experimental')
            ORDER BY CASE WHEN quote_ident(table_schema) IN ({_SEARCH_PATH}) THEN 0 ELSE 1 END, 1""",
        [('"Clicks"',), ("orders",), ("totals",)],
    ),
    (
        "columns",
        f"""SELECT quote_ident(column_name) AS "column", data_type AS "type"
            FROM information_schema.columns
            WHERE CASE WHEN array_length(parse_ident('orders'),1) = 2
              THEN quote_ident(table_schema) = (parse_ident('orders'))[1]
                AND quote_ident(table_name) = (parse_ident('orders'))[2]
              ELSE quote_ident(table_name) = 'orders' AND quote_ident(table_schema) IN ({_SEARCH_PATH})
            END""",
        [
            ("id", "bigint"),
            ("price", "numeric"),
            ("at", "timestamp with time zone"),
            ('"Tags"', "ARRAY"),
        ],
    ),
    (
        "columns of time",
        """SELECT quote_ident(column_name) FROM information_schema.columns WHERE table_name = 'orders'
           AND data_type IN ('timestamp without time zone', 'timestamp with time zone', 'bigint')""",
        [("id",), ("at",)],
    ),
]

# What psql asks for \d of a foreign table, which a stream is.
PSQL: list[Asked] = [
    (
        "columns of a stream",
        r"""SELECT a.attname, pg_catalog.format_type(a.atttypid, a.atttypmod), a.attnotnull,
              CASE WHEN attfdwoptions IS NULL THEN '' ELSE '(' || pg_catalog.array_to_string(ARRAY(
                SELECT pg_catalog.quote_ident(option_name) || ' ' || pg_catalog.quote_literal(option_value)
                FROM pg_catalog.pg_options_to_table(attfdwoptions)), ', ') || ')' END AS attfdwoptions
            FROM pg_catalog.pg_attribute a
            WHERE a.attrelid = '16387' AND a.attnum > 0 AND NOT a.attisdropped ORDER BY a.attnum;""",
        [("x", "integer", False, "")],
    ),
]
ALL = {
    f"{client}: {what}": (text, rows)
    for client, asked in (("pgcli", PGCLI), ("JDBC", JDBC), ("Grafana", GRAFANA), ("psql", PSQL))
    for what, text, rows in asked
}
