"""The tables of a campaign's ledger."""

from __future__ import annotations

from typing import Final

VERSION: Final = 3  # 2: builds have a table; 3: runs and builds are tasks, in one table, with needs

TASKS: Final = """
CREATE TABLE tasks (
  seq INTEGER PRIMARY KEY, id TEXT UNIQUE NOT NULL, kind TEXT NOT NULL, place TEXT NOT NULL,
  case_id TEXT NOT NULL, params TEXT NOT NULL, pass_name TEXT NOT NULL, pass_kind TEXT NOT NULL, tool TEXT,
  repeat INTEGER NOT NULL, job TEXT NOT NULL, task INTEGER NOT NULL, gpus INTEGER NOT NULL, reports TEXT NOT NULL,
  app TEXT, command TEXT, seconds_limit INTEGER,
  state TEXT NOT NULL DEFAULT 'planned', attempt INTEGER NOT NULL DEFAULT 0, reason TEXT, exit_code INTEGER,
  host TEXT, started REAL, ended REAL, reading TEXT NOT NULL DEFAULT 'none', submission TEXT);
CREATE INDEX tasks_job ON tasks (job, task);
CREATE INDEX tasks_state ON tasks (kind, state);
"""
NEEDS: Final = """
CREATE TABLE needs (
  task TEXT NOT NULL, source TEXT NOT NULL, why TEXT NOT NULL, state TEXT NOT NULL DEFAULT 'open',
  PRIMARY KEY (task, source)) WITHOUT ROWID;
CREATE INDEX needs_source ON needs (source);
CREATE INDEX needs_state ON needs (state, source);
"""
CHOICES: Final = """
CREATE TABLE choices (run TEXT PRIMARY KEY, arguments TEXT NOT NULL, limit_s INTEGER, source TEXT NOT NULL,
  made REAL NOT NULL, note TEXT NOT NULL) WITHOUT ROWID;
"""
_REST: Final = """
CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE submissions (
  seq INTEGER PRIMARY KEY, name TEXT UNIQUE NOT NULL, job TEXT NOT NULL, tasks TEXT NOT NULL,
  attempt INTEGER NOT NULL, gpus INTEGER NOT NULL, native_id TEXT, state TEXT NOT NULL, created REAL NOT NULL);
CREATE INDEX submissions_state ON submissions (state);
CREATE TABLE absent (what TEXT NOT NULL, reason TEXT NOT NULL, runs INTEGER NOT NULL);
CREATE TABLE problems (run TEXT NOT NULL, report TEXT, severity TEXT NOT NULL, message TEXT NOT NULL, fix TEXT);
"""
SCHEMA: Final = f"{_REST}{TASKS}{NEEDS}{CHOICES}PRAGMA user_version = {VERSION};\n"
