"""Which function carries out which statement.

Owns the table from statements to executors. Must never: know how one is carried out.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from headwater.execute import (
    altered_parts,
    change,
    connectors,
    continuous,
    copy,
    definitions,
    explain_continuous,
    flush,
    functions,
    indexes,
    insert,
    materialized_views,
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
from headwater.sql import statements as s
from headwater.storage.streaming.store import definition_keys

Handler = Callable[[Running, Any], Result]


def drop_relation(running: Running, statement: s.Drop) -> Result:
    """DROP TABLE and DROP STREAM: whatever kind of table the name means."""
    found = running.context.find(statement.name)
    if found is not None and found.kind in definition_keys:
        return streaming_tables.drop_streaming_table(running, statement)
    return tables.drop_table(running, statement)


DROP_HANDLERS: dict[str, Handler] = {
    "table": drop_relation,
    "streaming table": drop_relation,
    "stream": drop_relation,
    "function": functions.drop_function,
    "index": indexes.drop_index,
    "continuous query": continuous.drop_query,
    "query": continuous.drop_query,
    "materialized view": materialized_views.drop_materialized_view,
    "procedure": functions.drop_procedure,
    "view": views.drop_view,
    "sink": connectors.drop_connector,
    "source": connectors.drop_connector,
    "token": users.drop_token,
    "user": users.drop_user,
}


def drop(running: Running, statement: s.Drop) -> Result:
    """DROP of anything."""
    return DROP_HANDLERS[statement.kind.lower()](running, statement)


HANDLERS: dict[type[s.Statement], Handler] = {
    s.Advance: streaming_tables.advance,
    s.AlterTableSetClock: table_clock.set_clock,
    s.AlterTableSetMaxClockAhead: table_clock.set_max_ahead,
    s.AlterTableSetRange: streaming_tables.set_range,
    s.CreateStreamingTable: streaming_tables.create_streaming_table,
    s.AlterQueryResetLandmark: continuous.reset_landmark,
    s.AlterTableAddColumns: tables.add_columns,
    s.AlterTableDropColumns: tables.drop_columns,
    s.AlterTableRename: tables.rename_table,
    s.AlterTableRenameColumn: tables.rename_column,
    s.ControlQuery: continuous.control_query,
    s.ControlSink: connectors.control_connector,
    s.ControlSource: connectors.control_connector,
    s.Copy: copy.copy,
    s.CreateContinuousQuery: continuous.create_continuous_query,
    s.CreateMaterializedView: materialized_views.create_materialized_view,
    s.CreateIndex: indexes.create_index,
    s.CreateFunction: functions.create_function,
    s.CreateProcedure: functions.create_procedure,
    s.CreateSink: connectors.create_sink,
    s.CreateSource: connectors.create_source,
    s.CreateTable: tables.create_table,
    s.CreateView: views.create_view,
    s.AlterSetParts: altered_parts.alter_parts,
    s.AlterViewRefreshStatic: views.refresh_static,
    s.VerifyView: views.verify_view,
    s.Delete: change.delete,
    s.Describe: show.describe,
    s.Drop: drop,
    s.Explain: show.explain,
    s.ExplainObject: explain_continuous.explain_object,
    s.Flush: flush.flush,
    s.Insert: insert.insert,
    s.InsertFromStream: connectors.insert_from_stream,
    s.Merge: change.merge,
    s.Query: query.run_query,
    s.ResetSetting: show.reset_setting,
    s.SetSetting: show.set_setting,
    s.Show: show.show,
    s.ShowCreate: definitions.show_create,
    s.ShowSetting: show.show_setting,
    s.Subscribe: subscriptions.subscribe_statement,
    s.Truncate: tables.truncate,
    s.Update: change.update,
    s.AlterUser: users.alter_user,
    s.CreateToken: users.create_token,
    s.CreateUser: users.create_user,
}
