"""The tables of a campaign's ledger."""

from __future__ import annotations

from nsw.campaign.ledger_stages import STAGES_SCHEMA

VERSION = 2  # 2: builds have a table

SCHEMA = f"""
CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE runs (
  seq INTEGER PRIMARY KEY, id TEXT UNIQUE NOT NULL, case_id TEXT NOT NULL, params TEXT NOT NULL,
  pass_name TEXT NOT NULL, pass_kind TEXT NOT NULL, tool TEXT, repeat INTEGER NOT NULL,
  job TEXT NOT NULL, task INTEGER NOT NULL, gpus INTEGER NOT NULL, reports TEXT NOT NULL,
  state TEXT NOT NULL DEFAULT 'planned', attempt INTEGER NOT NULL DEFAULT 0, reason TEXT, exit_code INTEGER,
  host TEXT, started REAL, ended REAL, reading TEXT NOT NULL DEFAULT 'none', submission TEXT);
CREATE INDEX runs_task ON runs (job, task);
CREATE INDEX runs_state ON runs (state);
CREATE TABLE builds (
  seq INTEGER PRIMARY KEY, id TEXT UNIQUE NOT NULL, job TEXT UNIQUE NOT NULL, app TEXT NOT NULL, place TEXT NOT NULL,
  command TEXT NOT NULL, seconds_limit INTEGER NOT NULL, gpus INTEGER NOT NULL, needed_by TEXT NOT NULL,
  task INTEGER NOT NULL DEFAULT 0, state TEXT NOT NULL DEFAULT 'planned', attempt INTEGER NOT NULL DEFAULT 0,
  reason TEXT, exit_code INTEGER, host TEXT, started REAL, ended REAL, submission TEXT);
CREATE TABLE submissions (
  seq INTEGER PRIMARY KEY, name TEXT UNIQUE NOT NULL, job TEXT NOT NULL, tasks TEXT NOT NULL,
  attempt INTEGER NOT NULL, gpus INTEGER NOT NULL, native_id TEXT, state TEXT NOT NULL, created REAL NOT NULL);
CREATE INDEX submissions_state ON submissions (state);
CREATE TABLE absent (what TEXT NOT NULL, reason TEXT NOT NULL, runs INTEGER NOT NULL);
CREATE TABLE problems (run TEXT NOT NULL, report TEXT, severity TEXT NOT NULL, message TEXT NOT NULL, fix TEXT);
{STAGES_SCHEMA}PRAGMA user_version = {VERSION};
"""
