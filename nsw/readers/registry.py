"""The formats that nsw reads, one line each: a new format is a new file and a line here."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Format:
    """A report format: its id (the `format` of a Report), the tool that writes it, the module that reads it."""

    id: str
    tool: str
    module: str
    meaning: str
    folder: bool = False  # the report is a folder


# Asked in this order until one is certain; the most certain wins, the earlier at a tie. Magic numbers go first.
FORMATS: tuple[Format, ...] = (
    Format("nsys-sqlite", "nsys", "nsw.readers.nsys_sqlite", "nsys export --type sqlite, 2020 to 2026"),
    Format(
        "nsys-binary", "nsys", "nsw.readers.nsys_binary", ".nsys-rep, .qdrep, .qdstrm: exported when an nsys is found"
    ),
    Format("kineto", "pytorch", "nsw.readers.kineto", "Chrome traces of PyTorch's profiler, also .gz"),
    Format("pstats", "cProfile", "nsw.readers.pstats", "python -m cProfile -o FILE"),
    Format("nsys-stats", "nsys", "nsw.readers.nsys_stats", "nsys stats: text, CSV and TSV, also inside job output"),
    Format("nsys-parquet", "nsys", "nsw.readers.nsys_parquet", "nsys export --type parquetdir", folder=True),
    Format("nvprof-sqlite", "nvprof", "nsw.readers.nvprof_sqlite", "nvprof -o FILE (.nvvp, .nvprof), CUDA 8 to 12"),
    Format("nvprof-text", "nvprof", "nsw.readers.nvprof_text", "nvprof's text and CSV, also inside job output"),
    Format(
        "ncu-csv", "ncu", "nsw.readers.ncu_csv", "ncu --csv: details, raw, summary and session pages, amid other output"
    ),
    Format("ncu-text", "ncu", "nsw.readers.ncu_text", "ncu's pages as text, also inside job output"),
    Format("ncu-binary", "ncu", "nsw.readers.ncu_binary", ".ncu-rep: read where ncu_report or an ncu is found"),
    Format(
        "torch-table", "pytorch", "nsw.readers.torch_table", "key_averages().table() of PyTorch, in text or Markdown"
    ),
)
