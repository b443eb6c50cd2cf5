"""The tables of `pg_catalog` and `information_schema`: their columns, and their rows for a database.

Owns which columns there are. Columns that mean nothing here are left out where no client asks for them, and
constant where some client does.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from headwater.execute.relations import RelationColumns
from headwater.server.wire import types

PUBLIC, CATALOG, INFORMATION = 2200, 11, 13_000
OWNER, DATABASE = 10, 16_383
FIRST_OID = 16_384
KINDS = {
    "table": "r",
    "streaming table": "r",
    "stream": "f",
    "view": "v",
    "materialized view": "m",
    "continuous query": "v",
}
TABLE_TYPES = {"r": "BASE TABLE", "f": "FOREIGN", "v": "VIEW", "m": "BASE TABLE"}
Row = Sequence[Any]


def _columns(text: str) -> dict[str, str]:
    """`name type, name type` as a dictionary; a type stands for all names before it."""
    found: dict[str, str] = {}
    for part in text.split(","):
        *names, type_ = part.split()
        found |= dict.fromkeys(names, type_)
    return found


COLUMNS: Mapping[str, Mapping[str, str]] = {
    name: _columns(text)
    for name, text in {
        "pg_namespace": "oid oid, nspname name, nspowner oid, nspacl text",
        "pg_class": (
            "oid oid, relname name, relnamespace reltype reloftype relowner relam relfilenode"
            " reltablespace oid, relpages int4, reltuples float4, relallvisible int4, reltoastrelid oid,"
            " relhasindex relisshared bool, relpersistence relkind char, relnatts relchecks int2,"
            " relhasrules relhastriggers relhassubclass relrowsecurity relforcerowsecurity"
            " relispopulated bool, relreplident char, relispartition relhasoids bool, relrewrite oid,"
            " relfrozenxid relminmxid int8, relacl reloptions relpartbound text"
        ),
        "pg_attribute": (
            "attrelid oid, attname name, atttypid oid, attstattarget int4, attlen attnum int2,"
            " attndims attcacheoff atttypmod int4, attbyval bool, attalign attstorage attcompression"
            " char, attnotnull atthasdef atthasmissing bool, attidentity attgenerated char,"
            " attisdropped attislocal bool, attinhcount int4, attcollation oid,"
            " attacl attoptions attfdwoptions attmissingval text"
        ),
        "pg_type": (
            "oid oid, typname name, typnamespace typowner oid, typlen int2, typbyval bool,"
            " typtype typcategory char, typispreferred typisdefined bool, typdelim char,"
            " typrelid oid, typsubscript text, typelem typarray oid,"
            " typinput typoutput typreceive typsend typmodin typmodout typanalyze text,"
            " typalign typstorage char,"
            " typnotnull bool, typbasetype oid, typtypmod typndims int4, typcollation oid,"
            " typdefaultbin typdefault typacl text"
        ),
        "pg_database": (
            "oid oid, datname name, datdba oid, encoding int4, datcollate datctype name,"
            " datistemplate datallowconn bool, datconnlimit int4, dattablespace oid,"
            " datlastsysoid oid, datfrozenxid datminmxid int8, datacl text"
        ),
        "pg_roles": (
            "oid oid, rolname name, rolsuper rolinherit rolcreaterole rolcreatedb rolcanlogin"
            " rolreplication rolbypassrls bool, rolconnlimit int4, rolpassword text,"
            " rolvaliduntil text, rolconfig text"
        ),
        "pg_user": "usename name, usesysid oid, usecreatedb usesuper userepl usebypassrls bool,"
        " passwd text, valuntil text, useconfig text",
        "pg_proc": (
            "oid oid, proname name, pronamespace proowner prolang oid, procost prorows float4,"
            " provariadic oid, prosupport text, prokind char,"
            " prosecdef proleakproof proisstrict proretset bool,"
            " provolatile proparallel char, pronargs pronargdefaults int2, prorettype oid,"
            " proargtypes text, proallargtypes proargmodes proargnames proargdefaults prosrc probin text,"
            " proconfig proacl text"
        ),
        "pg_index": (
            "indexrelid indrelid oid, indnatts indnkeyatts int2, indisunique indisprimary"
            " indisexclusion indimmediate indisclustered indisvalid indcheckxmin indisready indislive"
            " indisreplident indnullsnotdistinct bool, indkey indcollation indclass indoption text,"
            " indexprs indpred text"
        ),
        "pg_constraint": (
            "oid oid, conname name, connamespace oid, contype char, condeferrable condeferred"
            " convalidated bool, conrelid contypid conindid conparentid confrelid oid,"
            " confupdtype confdeltype confmatchtype char, conislocal bool, coninhcount int4,"
            " connoinherit bool, conkey confkey conpfeqop conppeqop conffeqop conexclop text, conbin text,"
            " confdelsetcols text"
        ),
        "pg_description": "objoid classoid oid, objsubid int4, description text",
        "pg_shdescription": "objoid classoid oid, description text",
        "pg_attrdef": "oid adrelid oid, adnum int2, adbin text",
        "pg_inherits": "inhrelid inhparent oid, inhseqno int4, inhdetachpending bool",
        "pg_am": "oid oid, amname name, amhandler text, amtype char",
        "pg_collation": "oid oid, collname name, collnamespace collowner oid, collprovider char,"
        " collisdeterministic bool, collencoding int4, collcollate collctype collversion text",
        "pg_enum": "oid enumtypid oid, enumsortorder float4, enumlabel name",
        "pg_range": "rngtypid rngsubtype rngmultitypid oid, rngcollation oid, rngsubopc oid,"
        " rngcanonical rngsubdiff text",
        "pg_extension": "oid oid, extname name, extowner extnamespace oid, extrelocatable bool,"
        " extversion text, extconfig extcondition text",
        "pg_depend": "classid objid oid, objsubid int4, refclassid refobjid oid, refobjsubid int4,"
        " deptype char",
        "pg_rewrite": "oid oid, rulename name, ev_class oid, ev_type ev_enabled char,"
        " is_instead bool, ev_qual ev_action text",
        "pg_trigger": "oid tgrelid tgparentid oid, tgname name, tgfoid oid, tgtype int2,"
        " tgenabled char, tgisinternal bool, tgconstrrelid tgconstrindid tgconstraint oid,"
        " tgdeferrable tginitdeferred bool, tgnargs int2, tgattr tgargs tgqual tgoldtable"
        " tgnewtable text",
        "pg_policy": "oid oid, polname name, polrelid oid, polcmd char, polpermissive bool,"
        " polroles polqual polwithcheck text",
        "pg_statistic_ext": "oid stxrelid oid, stxname name, stxnamespace stxowner oid,"
        " stxstattarget int4, stxkeys stxkind stxexprs text",
        "pg_publication": "oid oid, pubname name, pubowner oid, puballtables pubinsert pubupdate"
        " pubdelete pubtruncate pubviaroot bool",
        "pg_publication_rel": "oid prpubid prrelid oid",
        "pg_publication_tables": "pubname schemaname tablename name",
        "pg_foreign_table": "ftrelid ftserver oid, ftoptions text",
        "pg_foreign_server": "oid oid, srvname name, srvowner srvfdw oid, srvtype srvversion"
        " srvacl srvoptions text",
        "pg_foreign_data_wrapper": "oid oid, fdwname name, fdwowner oid, fdwhandler fdwvalidator"
        " oid, fdwacl fdwoptions text",
        "pg_tablespace": "oid oid, spcname name, spcowner oid, spcacl spcoptions text",
        "pg_settings": "name text, setting text, unit text, category text, short_desc text,"
        " extra_desc text, context text, vartype text, source text, min_val max_val text,"
        " enumvals text, boot_val text, reset_val text, sourcefile text, sourceline int4,"
        " pending_restart bool",
        "pg_tables": "schemaname tablename tableowner tablespace name, hasindexes hasrules"
        " hastriggers rowsecurity bool",
        "pg_views": "schemaname viewname viewowner name, definition text",
        "pg_matviews": "schemaname matviewname matviewowner tablespace name, hasindexes"
        " ispopulated bool, definition text",
        "pg_indexes": "schemaname tablename indexname tablespace name, indexdef text",
        "pg_sequences": "schemaname sequencename sequenceowner name, data_type text,"
        " start_value min_value max_value increment_by int8, cycle bool, cache_size last_value int8",
        "pg_sequence": "seqrelid seqtypid oid, seqstart seqincrement seqmax seqmin seqcache int8,"
        " seqcycle bool",
        "pg_language": "oid oid, lanname name, lanowner oid, lanispl lanpltrusted bool,"
        " lanplcallfoid laninline lanvalidator oid, lanacl text",
        "pg_operator": "oid oid, oprname name, oprnamespace oprowner oid, oprkind char,"
        " oprcanmerge oprcanhash bool, oprleft oprright oprresult oprcom oprnegate oid,"
        " oprcode oprrest oprjoin text",
        "pg_opclass": "oid opcmethod oid, opcname name, opcnamespace opcowner opcfamily"
        " opcintype oid, opcdefault bool, opckeytype oid",
        "pg_aggregate": "aggfnoid oid, aggkind char, aggnumdirectargs int2",
        "pg_cast": "oid castsource casttarget castfunc oid, castcontext castmethod char",
        "pg_partitioned_table": "partrelid oid, partstrat char, partnatts int2, partdefid oid,"
        " partattrs partclass partcollation partexprs text",
        "pg_auth_members": "roleid member grantor oid, admin_option bool",
        "pg_event_trigger": "oid oid, evtname name, evtevent name, evtowner evtfoid oid, evtenabled char,"
        " evttags text",
        "pg_stat_activity": "datid oid, datname name, pid int4, usesysid oid, usename name,"
        " application_name text, client_addr text, client_port int4, backend_start xact_start"
        " query_start state_change timestamptz, wait_event_type wait_event state text, query text,"
        " backend_type text",
        "pg_stat_user_tables": "relid oid, schemaname relname name, seq_scan n_live_tup n_dead_tup"
        " int8",
        "pg_statio_user_tables": "relid oid, schemaname relname name",
        "pg_db_role_setting": "setdatabase setrole oid, setconfig text",
        "pg_default_acl": "oid defaclrole defaclnamespace oid, defaclobjtype char, defaclacl text",
        "pg_locks": "locktype text, database oid, relation oid, pid int4, mode text, granted bool",
        "pg_timezone_names": "name text, abbrev text, utc_offset text, is_dst bool",
        "information_schema_schemata": "catalog_name schema_name schema_owner text,"
        " default_character_set_catalog default_character_set_schema default_character_set_name"
        " sql_path text",
        "information_schema_tables": "table_catalog table_schema table_name table_type text,"
        " self_referencing_column_name reference_generation user_defined_type_catalog"
        " user_defined_type_schema user_defined_type_name text, is_insertable_into is_typed"
        " commit_action text",
        "information_schema_views": "table_catalog table_schema table_name view_definition"
        " check_option is_updatable is_insertable_into text",
        "information_schema_columns": (
            "table_catalog table_schema table_name column_name text, ordinal_position int4,"
            " column_default is_nullable data_type text, character_maximum_length"
            " character_octet_length numeric_precision numeric_precision_radix numeric_scale"
            " datetime_precision int4, interval_type text, udt_catalog udt_schema udt_name text,"
            " is_identity identity_generation is_generated generation_expression is_updatable"
            " collation_name domain_name text"
        ),
        "information_schema_table_constraints": "constraint_catalog constraint_schema"
        " constraint_name table_catalog table_schema table_name constraint_type is_deferrable"
        " initially_deferred enforced text",
        "information_schema_key_column_usage": "constraint_catalog constraint_schema"
        " constraint_name table_catalog table_schema table_name column_name text,"
        " ordinal_position position_in_unique_constraint int4",
        "information_schema_constraint_column_usage": "table_catalog table_schema table_name"
        " column_name constraint_catalog constraint_schema constraint_name text",
        "information_schema_referential_constraints": "constraint_catalog constraint_schema"
        " constraint_name unique_constraint_catalog unique_constraint_schema"
        " unique_constraint_name match_option update_rule delete_rule text",
        "information_schema_routines": "specific_catalog specific_schema specific_name"
        " routine_catalog routine_schema routine_name routine_type data_type text",
        "information_schema_sequences": "sequence_catalog sequence_schema sequence_name text",
        "information_schema_character_sets": "character_set_name text",
    }.items()
}
TYPES = {name: type_ for table in COLUMNS.values() for name, type_ in table.items()}
_DEFAULTS = {"bool": 0, "oid": 0, "int2": 0, "int4": 0, "int8": 0, "float4": 0.0}


def row(table: str, **given: Any) -> Row:
    """A row of a table: what is given, and zero, false or NULL for the rest."""
    columns = COLUMNS[table]
    unknown = given.keys() - columns.keys()
    assert not unknown, unknown
    return [given.get(name, _DEFAULTS.get(type_)) for name, type_ in columns.items()]


def rows_of(relations: Iterable[RelationColumns], database: str, user: str) -> dict[str, list[Row]]:
    """The rows of all tables that have some."""
    found = _constant_rows(database, user)
    for relation in relations:
        _add_relation(found, relation, database, user)
    return found


def setting_rows(values: Mapping[str, str], defaults: Mapping[str, str]) -> list[Row]:
    """pg_settings: the parameters of a session."""
    return [
        row("pg_settings", name=name, setting=value, context="user", vartype="string",
            source="default" if value == defaults.get(name) else "session",
            boot_val=defaults.get(name), reset_val=defaults.get(name))
        for name, value in values.items()
    ]  # fmt: skip


def _constant_rows(database: str, user: str) -> dict[str, list[Row]]:
    namespaces = ((PUBLIC, "public"), (CATALOG, "pg_catalog"), (INFORMATION, "information_schema"))
    return {
        "pg_namespace": [
            row("pg_namespace", oid=oid, nspname=name, nspowner=OWNER) for oid, name in namespaces
        ],
        "information_schema_schemata": [
            row("information_schema_schemata", catalog_name=database, schema_name=name,
                schema_owner=user)
            for _, name in namespaces
        ],
        "pg_type": [_type_row(t) for t in types.BY_OID.values()],
        "pg_database": [
            row("pg_database", oid=DATABASE, datname=database, datdba=OWNER, encoding=6,
                datcollate="C.UTF-8", datctype="C.UTF-8", datallowconn=1, datconnlimit=-1,
                dattablespace=1663)
        ],
        "pg_roles": [
            row("pg_roles", oid=OWNER, rolname=user, rolsuper=1, rolinherit=1, rolcreaterole=1,
                rolcreatedb=1, rolcanlogin=1, rolconnlimit=-1)
        ],
        "pg_user": [row("pg_user", usename=user, usesysid=OWNER, usecreatedb=1, usesuper=1)],
        "pg_am": [row("pg_am", oid=2, amname="heap", amtype="t")],
        "pg_tablespace": [row("pg_tablespace", oid=1663, spcname="pg_default", spcowner=OWNER)],
        "pg_language": [row("pg_language", oid=14, lanname="sql", lanowner=OWNER, lanpltrusted=1)],
        "pg_foreign_server": [row("pg_foreign_server", oid=1, srvname="stream", srvowner=OWNER)],
    }  # fmt: skip


def _type_row(type_: types.PgType) -> Row:
    element = types.ELEMENTS.get(type_.oid)
    return row(
        "pg_type",
        oid=type_.oid,
        typname=type_.name,
        typnamespace=CATALOG,
        typowner=OWNER,
        typlen=type_.size,
        typbyval=int(0 < type_.size <= 8),
        typtype="b",
        typcategory=type_.category,
        typisdefined=1,
        typdelim=",",
        typelem=element.oid if element else 0,
        typarray=type_.array,
        typinput="array_in" if element else f"{type_.name}in",
        typtypmod=-1,
    )


def _add_relation(
    found: dict[str, list[Row]], relation: RelationColumns, database: str, user: str
) -> None:
    oid, kind = FIRST_OID + relation.id, KINDS[relation.kind]

    def add(table: str, **given: Any) -> None:
        found.setdefault(table, []).append(row(table, **given))

    add("pg_class", oid=oid, relname=relation.name, relnamespace=PUBLIC, relowner=OWNER,
        relam=2 if kind in "rm" else 0, reltuples=-1.0, relpersistence="p", relkind=kind,
        relnatts=len(relation.schema), relispopulated=1, relreplident="d",
        relhasrules=int(kind == "v"))  # fmt: skip
    where: dict[str, Any] = {
        "table_catalog": database, "table_schema": "public", "table_name": relation.name
    }  # fmt: skip
    insertable = "YES" if kind in "rf" else "NO"
    add("information_schema_tables", **where, table_type=TABLE_TYPES[kind],
        is_insertable_into=insertable, is_typed="NO")  # fmt: skip
    named = {"schemaname": "public"}
    if kind == "r":
        add("pg_tables", **named, tablename=relation.name, tableowner=user)
    elif kind == "m":
        add("pg_matviews", **named, matviewname=relation.name, matviewowner=user, ispopulated=1,
            definition=relation.text)  # fmt: skip
    elif kind == "v":
        add("pg_views", **named, viewname=relation.name, viewowner=user, definition=relation.text)
        add("information_schema_views", **where, view_definition=relation.text,
            check_option="NONE", is_updatable="NO", is_insertable_into="NO")  # fmt: skip
    else:
        add("pg_foreign_table", ftrelid=oid, ftserver=1)
    add("pg_description", objoid=oid, classoid=1259, description=relation.kind)
    for number, column in enumerate(relation.schema, 1):
        _add_column(add, oid, number, column, where)


def _add_column(add: Any, oid: int, number: int, column: Any, where: Mapping[str, Any]) -> None:
    type_, modifier = types.pg_type(column.type), types.modifier(column.type)
    decimal = type_.name == "numeric" and modifier >= 0
    integers = {"int2": 16, "int4": 32, "int8": 64}
    precision = ((modifier - 4) >> 16) if decimal else integers.get(type_.name)
    add("pg_attribute", attrelid=oid, attname=column.name, atttypid=type_.oid, attlen=type_.size,
        attnum=number, attstattarget=-1, attcacheoff=-1, atttypmod=modifier,
        attndims=int(type_.category == "A"), attstorage="p", attalign="i", attcompression="",
        attnotnull=int(not column.nullable), attidentity="", attgenerated="",
        attislocal=1)  # fmt: skip
    add("information_schema_columns", **where, column_name=column.name, ordinal_position=number,
        is_nullable="YES" if column.nullable else "NO",
        data_type="ARRAY" if type_.category == "A" else type_.sql,
        character_maximum_length=None, character_octet_length=None, numeric_precision=precision,
        numeric_precision_radix=10 if decimal else 2 if precision else None,
        numeric_scale=((modifier - 4) & 0x7FF) if decimal else 0 if precision else None,
        datetime_precision=6 if type_.name.startswith("time") else None,
        udt_catalog=where["table_catalog"], udt_schema="pg_catalog", udt_name=type_.name,
        is_identity="NO", is_generated="NEVER", is_updatable="YES")  # fmt: skip
