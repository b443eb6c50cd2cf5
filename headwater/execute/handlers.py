"""Which function carries out which statement.

Owns the table from statements to executors. Must never: know how one is carried out.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from headwater.execute import (
    change,
    connectors,
    continuous,
    copy,
    explain_continuous,
    flush,
    functions,
    indexes,
    insert,
    query,
    show,
    streaming_tables,
    subscriptions,
    table_clock,
    tables,
    users,
    views,
)
from headwater.execute.context import Running
from headwater.result import Result
from headwater.sql.statements.advance import Advance
from headwater.sql.statements.alter import (
    AlterQueryResetLandmark,
    AlterTableAddColumns,
    AlterTableDropColumns,
    AlterTableRename,
    AlterTableRenameColumn,
    AlterTableSetClock,
    AlterTableSetMaxClockAhead,
    AlterTableSetRange,
    AlterViewRefreshStatic,
)
from headwater.sql.statements.base import Statement
from headwater.sql.statements.control import ControlQuery, ControlSink, ControlSource
from headwater.sql.statements.copy import Copy
from headwater.sql.statements.create_continuous_query import CreateContinuousQuery
from headwater.sql.statements.create_function import CreateFunction
from headwater.sql.statements.create_index import CreateIndex
from headwater.sql.statements.create_materialized_view import CreateMaterializedView
from headwater.sql.statements.create_procedure import CreateProcedure
from headwater.sql.statements.create_sink import CreateSink
from headwater.sql.statements.create_source import CreateSource
from headwater.sql.statements.create_streaming_table import CreateStreamingTable
from headwater.sql.statements.create_table import CreateTable
from headwater.sql.statements.create_token import CreateToken
from headwater.sql.statements.create_view import CreateView
from headwater.sql.statements.delete import Delete
from headwater.sql.statements.describe import Describe
from headwater.sql.statements.drop import Drop
from headwater.sql.statements.explain import Explain, ExplainObject
from headwater.sql.statements.flush import Flush
from headwater.sql.statements.insert import Insert, InsertFromStream
from headwater.sql.statements.merge import Merge
from headwater.sql.statements.query import Query
from headwater.sql.statements.setting import ResetSetting, SetSetting
from headwater.sql.statements.show import Show, ShowSetting
from headwater.sql.statements.subscribe import Subscribe
from headwater.sql.statements.truncate import Truncate
from headwater.sql.statements.update import Update
from headwater.sql.statements.user import AlterUser, CreateUser
from headwater.sql.statements.verify import VerifyView

Handler = Callable[[Running, Any], Result]


def drop_relation(running: Running, statement: Drop) -> Result:
    """DROP TABLE and DROP STREAM: whatever kind of table the name means."""
    found = running.context.find(statement.name)
    if found is not None and running.context.streams.find(found.id) is not None:
        return streaming_tables.drop_streaming_table(running, statement)
    return tables.drop_table(running, statement)


HANDLERS: dict[type[Statement], Handler] = {
    Advance: streaming_tables.advance,
    AlterTableSetClock: table_clock.set_clock,
    AlterTableSetMaxClockAhead: table_clock.set_max_ahead,
    AlterTableSetRange: streaming_tables.set_range,
    CreateStreamingTable: streaming_tables.create_streaming_table,
    AlterQueryResetLandmark: continuous.reset_landmark,
    AlterTableAddColumns: tables.add_columns,
    AlterTableDropColumns: tables.drop_columns,
    AlterTableRename: tables.rename_table,
    AlterTableRenameColumn: tables.rename_column,
    ControlQuery: continuous.control_query,
    ControlSink: connectors.control_connector,
    ControlSource: connectors.control_connector,
    Copy: copy.copy,
    CreateContinuousQuery: continuous.create_continuous_query,
    CreateMaterializedView: continuous.create_materialized_view,
    CreateIndex: indexes.create_index,
    CreateFunction: functions.create_function,
    CreateProcedure: functions.create_procedure,
    CreateSink: connectors.create_sink,
    CreateSource: connectors.create_source,
    CreateTable: tables.create_table,
    CreateView: views.create_view,
    AlterViewRefreshStatic: views.refresh_static,
    VerifyView: views.verify_view,
    Delete: change.delete,
    Describe: show.describe,
    Explain: show.explain,
    ExplainObject: explain_continuous.explain_object,
    Flush: flush.flush,
    Insert: insert.insert,
    InsertFromStream: connectors.insert_from_stream,
    Merge: change.merge,
    Query: query.run_query,
    ResetSetting: show.reset_setting,
    SetSetting: show.set_setting,
    Show: show.show,
    ShowSetting: show.show_setting,
    Subscribe: subscriptions.subscribe_statement,
    Truncate: tables.truncate,
    Update: change.update,
    AlterUser: users.alter_user,
    CreateToken: users.create_token,
    CreateUser: users.create_user,
}
DROP_HANDLERS: dict[str, Handler] = {
    "table": drop_relation,
    "streaming table": drop_relation,
    "stream": drop_relation,
    "function": functions.drop_function,
    "index": indexes.drop_index,
    "continuous query": continuous.drop_query,
    "query": continuous.drop_query,
    "materialized view": continuous.drop_materialized_view,
    "procedure": functions.drop_procedure,
    "view": views.drop_view,
    "sink": connectors.drop_connector,
    "source": connectors.drop_connector,
    "token": users.drop_token,
    "user": users.drop_user,
}


def handler_of(statement: Statement) -> Handler | None:
    """What carries out a statement; None if nothing does yet."""
    if isinstance(statement, Drop):
        return DROP_HANDLERS.get(statement.kind.lower())
    return HANDLERS.get(type(statement))
