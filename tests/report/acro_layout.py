"""The layout of ACRO 1.0.2: ``Records.finalise_json`` writes it, and ``load_records`` reads it."""

import hashlib
import json

import pandas as pd

#: Keys and types of a record.
RECORD = {
    **dict.fromkeys(("uid", "status", "type", "command", "summary", "timestamp", "exception"), str),
    **dict.fromkeys(("properties", "outcome", "fair"), dict),
    **dict.fromkeys(("files", "comments"), list),
}
FAIR = {
    **dict.fromkeys(("context", "statbarn", "dependent"), str),
    **dict.fromkeys(("risks", "checks_needed", "common_mitigations", "independent"), list),
    "check_status": dict,
}
#: ACRO's default.yaml, and what ``ACRO.__init__`` adds.
CONFIG = {
    "safe_threshold": 10,
    "safe_dof_threshold": 10,
    "safe_nk_n": 2,
    "safe_nk_k": 0.90,
    "safe_pratio_p": 0.10,
    "check_missing_values": False,
    "survival_safe_threshold": 10,
    "zeros_are_disclosive": True,
    "safe_round_base": 5,
    "federated": False,
    "blocked_extensions": [".svg", ".gph"],
    "suppress": False,
}
#: Statbarns with their risks, as in ACRO's statbarns.json.
RISKS = {
    "CorrelationCoefficients": {"LowDOF"},
    "Frequencies": {"ClassDisclosure", "Differencing", "LowCount"},
    "HazardSurvivalTables": {"ImplicitTables", "LowDOF"},
    "LinearAggregations": {"Dominance", "Differencing", "LowCount"},
    "not stated": set(),
}
TYPES = {"table", "regression", "survival plot"}


def refuse_constant(name):
    raise AssertionError(f"{name} is no JSON")


def read(folder):
    """Return results and settings in a folder, after all that the layout asks for."""
    texts = {name: (folder / f"{name}.json").read_text("utf-8") for name in ("results", "config")}
    results, config = (json.loads(one, parse_constant=refuse_constant) for one in texts.values())
    assert list(results) == ["version", "tool", "results"]
    assert results["version"] == "1.0.2"
    assert results["tool"].keys() == {"@type", "name", "version"}
    assert CONFIG.keys() <= config.keys()
    files = {path.name for path in folder.iterdir() if path.is_file()}
    named = [file["name"] for one in results["results"].values() for file in one["files"]]
    assert len(set(named)) == len(named)
    assert {*named} == files - {"results.json", "config.json"}
    for name in files:
        stated = (folder / "checksums" / f"{name}.txt").read_text()
        assert stated == hashlib.sha256((folder / name).read_bytes()).hexdigest()
    assert len(list((folder / "checksums").iterdir())) == len(files)
    for uid, record in results["results"].items():
        _check(folder, uid, record)
    return results["results"], config


def _check(folder, uid, record):
    assert {name: type(value) for name, value in record.items()} == RECORD
    assert {name: type(value) for name, value in record["fair"].items()} == FAIR
    assert record["uid"] == uid
    assert record["status"] in {"pass", "review", "fail"}
    assert record["type"] in TYPES
    assert record["files"]
    assert {*record["fair"]["risks"]} == RISKS[record["fair"]["statbarn"]]
    assert {*record["fair"]["check_status"]} == {*record["fair"]["checks_needed"]}
    worst = {"fail", "review", "pass"} & {*record["fair"]["check_status"].values()}
    assert record["status"] == min(worst, key=["fail", "review", "pass"].index)
    for file in record["files"]:
        path = folder / file["name"]
        assert file["sdc"] == (
            {} if record["type"] == "regression" else {"summary": {}, "cells": {}}
        )
        assert path.suffix not in CONFIG["blocked_extensions"]
        if path.suffix == ".csv":
            assert len(pd.read_csv(path))
        elif path.suffix == ".png":
            assert path.read_bytes().startswith(b"\x89PNG\r\n\x1a\n")
        else:
            json.loads(path.read_text("utf-8"))
