"""One file per statement: a frozen record, and the function that parses it from a cursor."""

from __future__ import annotations

from headwater.sql.statements.advance import Advance
from headwater.sql.statements.alter import (
    AlterQueryResetLandmark,
    AlterSetParts,
    AlterTableAddColumns,
    AlterTableDropColumns,
    AlterTableRename,
    AlterTableRenameColumn,
    AlterTableSetClock,
    AlterTableSetMaxClockAhead,
    AlterTableSetRange,
    AlterViewRefreshStatic,
)
from headwater.sql.statements.base import ColumnDefinition, FunctionParameter, Statement
from headwater.sql.statements.call import Call
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
from headwater.sql.statements.cursors import CloseCursor, DeclareCursor, Fetch
from headwater.sql.statements.delete import Delete
from headwater.sql.statements.describe import Describe
from headwater.sql.statements.drop import Drop
from headwater.sql.statements.explain import Explain, ExplainObject
from headwater.sql.statements.flush import Flush
from headwater.sql.statements.insert import Insert, InsertFromStream
from headwater.sql.statements.merge import Merge, MergeClause
from headwater.sql.statements.query import Query
from headwater.sql.statements.session import Deallocate, Discard, Unlisten
from headwater.sql.statements.setting import ResetSetting, SetSetting
from headwater.sql.statements.show import Show, ShowCreate, ShowSetting
from headwater.sql.statements.subscribe import Subscribe
from headwater.sql.statements.transaction import (
    Begin,
    Commit,
    ReleaseSavepoint,
    Rollback,
    RollbackToSavepoint,
    Savepoint,
    SetTransaction,
)
from headwater.sql.statements.truncate import Truncate
from headwater.sql.statements.update import Assignment, Update
from headwater.sql.statements.user import AlterUser, CreateUser
from headwater.sql.statements.verify import VerifyView

__all__ = [
    "Advance",
    "AlterQueryResetLandmark",
    "AlterSetParts",
    "AlterTableAddColumns",
    "AlterTableDropColumns",
    "AlterTableRename",
    "AlterTableRenameColumn",
    "AlterTableSetClock",
    "AlterTableSetMaxClockAhead",
    "AlterTableSetRange",
    "AlterUser",
    "AlterViewRefreshStatic",
    "Assignment",
    "Begin",
    "Call",
    "CloseCursor",
    "ColumnDefinition",
    "Commit",
    "ControlQuery",
    "ControlSink",
    "ControlSource",
    "Copy",
    "CreateContinuousQuery",
    "CreateFunction",
    "CreateIndex",
    "CreateMaterializedView",
    "CreateProcedure",
    "CreateSink",
    "CreateSource",
    "CreateStreamingTable",
    "CreateTable",
    "CreateToken",
    "CreateUser",
    "CreateView",
    "Deallocate",
    "DeclareCursor",
    "Delete",
    "Describe",
    "Discard",
    "Drop",
    "Explain",
    "ExplainObject",
    "Fetch",
    "Flush",
    "FunctionParameter",
    "Insert",
    "InsertFromStream",
    "Merge",
    "MergeClause",
    "Query",
    "ReleaseSavepoint",
    "ResetSetting",
    "Rollback",
    "RollbackToSavepoint",
    "Savepoint",
    "SetSetting",
    "SetTransaction",
    "Show",
    "ShowCreate",
    "ShowSetting",
    "Statement",
    "Subscribe",
    "Truncate",
    "Unlisten",
    "Update",
    "VerifyView",
]  # fmt: skip
