"""How files are read: never shifted, cut or guessed in silence."""

import sys
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from skdpsurv import PrivacyAccountant, Release
from skdpsurv.cli.options import FileFormat
from skdpsurv.cli.record_files import RecordFile, column_names, read_table, require_even_rows

either = pytest.mark.parametrize("form", [FileFormat(), FileFormat(dask=True)])


def read(path, *columns, form=None, **labels):
    found = read_table(RecordFile(path, columns, labels), form or FileFormat())
    return found.compute() if hasattr(found, "compute") else found


def written(tmp_path, text, name="a.csv"):
    path = tmp_path / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


@either
def test_a_row_of_another_length_is_refused(tmp_path, form):
    for more in (",", ",NA", ",x", ",,", ""):
        rows = f"a,b,c\n1,2,3\n4,5{more and ',6'}{more}\n"
        with pytest.raises(Exception, match="more or fewer cells"):
            read(written(tmp_path, rows), "a", "b", "c", form=form)
        path = written(tmp_path, rows.replace("4,5", "1,2,3\n4,5", 1), "b.csv")
        with pytest.raises(Exception, match="more or fewer cells"):
            require_even_rows(path, form)


@either
def test_columns_are_found_by_name_in_any_order(tmp_path, form):
    path = written(tmp_path, '\n\na,b,"c, d"\n1,x,"2\n,3"\n\n4,007,NA\n')
    frame = read(path, "b", "a", form=form, b=())
    assert frame.to_dict("list") == {"b": ["x", "007"], "a": [1, 4]}
    assert list(frame) == ["b", "a"]
    assert read(path, "c, d", form=FileFormat())["c, d"].isna().tolist() == [False, True]


@either
@pytest.mark.parametrize("other", ["7", "7.5", ""])
def test_what_means_missing_is_the_same_whatever_others_hold(tmp_path, form, other):
    """The last record must not decide whether " 99" is 99, nor which double a number is."""
    path = written(tmp_path, f"a,b\n 99,1\n099,1\n4503599627370497001,1\n{other},1\n")
    frame = read(path, "a", "b", form=replace(form, missing_value=["99"]))
    assert frame["a"].isna().tolist()[:3] == [True, True, False]
    assert float(frame["a"].iloc[2]) == 4503599627370497001.0
    target = read_table(RecordFile(path, ("a",), target=("a",)), FileFormat())["a"]
    assert not target.iloc[:3].isna().any()


def test_files_of_one_name_with_a_star_must_have_the_same_columns(study):
    first, second = study.frame.iloc[:150], study.frame.iloc[150:]
    study.write(first, "part-1.csv")
    study.write(second, "part-2.csv")
    study.survival("--dask", "--seed", "1", data="@part-*.csv", code=0)
    study.survival("--seed", "1", out="@whole.json", code=0)
    for name, values in study.release().values.items():
        np.testing.assert_allclose(
            values, study.release("whole").values[name], rtol=1e-9, atol=1e-12
        )
    study.write(second[second.columns[::-1]], "part-2.csv")
    study.survival("--dask", data="@part-*.csv", out="@x.json", code=3, says="part-2.csv")


def test_parquet_says_itself_what_its_cells_are(study):
    """A named index is a column; columns of truth values are events, and never times."""
    pytest.importorskip("pyarrow")
    study.frame.set_index("id").to_parquet(study.folder / "index.parquet")
    study.km("--missing-value", "-99", data="@index.parquet", code=2)
    study.frame.assign(days=study.frame["days"] > 100).to_parquet(study.folder / "flags.parquet")
    for more in ((), ("--dask",)):
        out = f"@index{len(more)}.json"
        named = ("--person", "id", *more)
        study.km(*named, data="@index.parquet", out=out, code=0, says="300 people")
        study.km(*more, data="@flags.parquet", code=3, says="--time")
    study.frame.assign(died=study.frame["died"] == 1).to_parquet(study.folder / "b.parquet")
    named = ("--event-is", "true", "--censored-is", "false", "--seed", "1")
    study.km(*named, data="@b.parquet", code=0)
    study.km("--seed", "1", out="@same.json", code=0)
    assert study.release("km") == study.release("same")


def test_compressed_and_encoded(tmp_path):
    frame = pd.DataFrame({"Größe": [1.5, np.nan], "b": ["ä", "ö"]})
    for name, encoding in (("gz", "utf-16"), ("xz", "utf-8-sig"), ("bz2", "cp1252")):
        path = tmp_path / f"a.csv.{name}"
        frame.to_csv(path, index=False, encoding=encoding)
        form = FileFormat(encoding="utf-8" if encoding == "utf-8-sig" else encoding)
        assert column_names(path, form) == ["Größe", "b"]
        pd.testing.assert_frame_equal(read(path, "Größe", "b", form=form, b=()), frame)


def test_what_is_wrong_with_a_file_is_said(study):
    for content, says in [
        (b"", "not empty"),
        (b"PK\x03\x04\x00 a spreadsheet", "spreadsheet"),
        ("Größe\n1\n".encode("cp1252"), "--encoding"),
        (b"days;died\n1;0\n", "--separator"),
        (b"days,died\n1\x00,0\n", "--encoding"),
        (b"days,died\n", "at least one row"),
        (b"Days,died\n1,0\n", "Days"),
        (b"2001-12-31,died\n1,0\n", "line of names"),
        (b'"","days","died"\n"1",1,0\n', "row.names = FALSE"),
        (b"id, days, died\n1,1,0\n", "Did you mean ' days'? It has spaces around it"),
        (b"true,died\n1,0\n", "line of names"),
    ]:
        (study.folder / "bad.csv").write_bytes(content)
        study.km(data="@bad.csv", code=3, says=says)


def test_what_is_wrong_with_times_and_events_is_said_in_words_of_the_terminal(study):
    """An error depends on no cell beyond its rule, so all have the same hints."""
    two = ("--event-is", "Yes", "--censored-is", "No")
    for cells, more, says in [
        ('"1,234.5",0\n"1,100.0",1', (), "--time must be numbers"),
        ('"1,234.5",0\n"1,100.0",1', (), "1234.5, not 1,234.5"),
        ("2001-12-31,0\n2002-01-31,1", (), "--entry-date and --exit-date subtract dates"),
        ("1,2\n2,1", (), "--event must be boolean, or 0 and 1. (X is"),
        ("1,2\n2,1", (), "--event-is 2 --censored-is 1"),
        ("1,dead\n2,alive", (), "as in --event-is dead --censored-is alive"),
        ("1,\n2,1", (), "--event must not contain missing values"),
        ("1,Yes\n2,yes", two, "--event must be boolean"),
        ("1,Yes\n2,yes", two, "Yes is not yes"),
        ("1,Yes\n2,", two, "--event must not contain missing values"),
        (",1\n2,0", (), "--time must not contain missing values"),
    ]:
        (study.folder / "bad.csv").write_text(f"days,died\n{cells}\n")
        said = study.km(*more, data="@bad.csv", code=3, says=says).stderr
        assert not [word for word in ("sksurv", "label type", "It was taken") if word in said]


def test_rows_from_a_start_to_a_stop_are_refused_by_their_names(study):
    rows = study.frame.rename(columns={"days": "stop"}).assign(start=0)
    study.write(rows, "rows.csv")
    target = ("--time", "stop", "--event", "died")
    says = "'stop' and 'start' look like rows from a start to a stop"
    ledger = ("--ledger", "@l.sqlite", "--budget", "9")
    for more in ((), ("--person", "id"), ledger):
        study.km(*more, data="@rows.csv", target=target, code=3, says=says)
    given = ("schema", "@rows.csv", *target, "--out", "@rows.toml")
    study.run(*given, code=3, says=says)
    assert study.spent("l") == 0.0
    study.write(study.frame.rename(columns={"days": "start", "died": "stop"}), "swapped.csv")
    swapped = ("--time", "start", "--event", "stop")
    study.km(data="@swapped.csv", target=swapped, code=3, says="look like rows from a start")
    study.write(rows.rename(columns={"start": "first"}), "rows.csv")
    study.km(data="@rows.csv", target=target, code=0)


def test_many_columns_without_a_description_are_counted(study):
    more = pd.DataFrame(0, index=study.frame.index, columns=[f"v{i}" for i in range(3000)])
    study.write(pd.concat([study.frame, more], axis=1).head(20))
    result = study.survival(code=4, says="must describe v0, v1, v2, v3, v4, v5 and 2,994 more:")
    assert len(result.stderr) < 200


@pytest.mark.parametrize("ending", ["xlsx", "dta"])
def test_files_of_other_programs_hold_the_same(study, ending):
    if ending == "xlsx":
        pytest.importorskip("openpyxl")
    frame = study.frame.assign(smoking="now")
    study.write(frame)
    if ending == "xlsx":
        frame.to_excel(study.folder / "study.xlsx", index=False)
    else:
        frame.to_stata(study.folder / "study.dta", write_index=False)
    for name in ("csv", ending):
        study.survival("--seed", "1", data=f"@study.{name}", out=f"@{name}.json", code=0)
    assert study.release("csv") == study.release(ending)
    study.survival("--decimal", ",", data=f"@study.{ending}", code=2, says="for CSV files")
    study.survival("--dask", data=f"@study.{ending}", code=2, says="for CSV and Parquet files")
    (study.folder / f"bad.{ending}").write_bytes(b"days,died\n")
    study.km(data=f"@bad.{ending}", code=3, says=f"as .{ending}")


def test_a_spreadsheet_says_what_must_be_installed(study, monkeypatch):
    monkeypatch.setitem(sys.modules, "openpyxl", None)
    (study.folder / "a.xlsx").write_bytes(b"PK")
    study.km(data="@a.xlsx", code=8, says="pip install openpyxl")


@pytest.mark.parametrize("charged", [False, True])
def test_a_dry_run_charges_nothing_and_reads_nothing_where_refusals_are_charged(study, charged):
    accountant = PrivacyAccountant(3.0, path=study.path("study.sqlite"), charge_refusals=charged)
    study.write(study.frame.assign(id=study.frame["id"].where(study.frame.index > 0)), "gap.csv")
    more = ("--person", "id", "--ledger", "@study.sqlite")
    says = "for ledgers that do not charge refusals" * charged
    study.km(*more, "--dry-run", data="@gap.csv", code=2 if charged else 3, says=says)
    study.km(*more, "--dry-run", code=2 if charged else 0, says=says)
    assert accountant.spent() == 0.0
    study.km(*more, data="@gap.csv", code=3)
    assert accountant.spent() == float(charged)


def test_a_file_that_was_read_is_paid_for_whatever_fails_then(study):
    """By settings that always fail it could be asked, uncharged, whether it can be read."""
    accountant = PrivacyAccountant(3.0, path=study.path("l.sqlite"), charge_refusals=True)
    for n_refused in (1, 2):
        more = ("--ledger", "@l.sqlite", "--set", "alpha=1e300")
        study.survival(*more, code=3, says="too extreme for double precision")
        assert accountant.spent() == n_refused
    study.survival("--ledger", "@l.sqlite", code=0)
    assert accountant.spent() == 3.0


def test_the_bytes_of_records_are_no_matter_of_the_names(study):
    """They are decoded with these: an encoding that lacks a letter would ask for it."""
    for text in ("days,died\n1,0\n", "days,died\n1,\xe9\n"):
        (study.folder / "bytes.csv").write_text(text, encoding="utf-8")
        assert column_names(study.folder / "bytes.csv", FileFormat(encoding="ascii")) == [
            *("days", "died")
        ]


def test_an_evaluation_refuses_columns_that_fit_refuses(study):
    study.survival(code=0)
    for column, value in (("age", "old"), ("stage", "i"), ("treated", 2)):
        study.write(study.frame.assign(**{column: value}), "bad.csv")
        ledger = ("--ledger", "@l.sqlite", "--budget", "9")
        study.evaluate(*ledger, data="@bad.csv", code=3, says=column)
    assert study.spent("l") == 0.0


def test_what_cannot_be_said_is_written_all_the_same(study, monkeypatch):
    def broken(release):
        yield "something"
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("skdpsurv.cli.printing.result_lines", broken)
    study.km(code=7, says="is written, and paid for")
    assert study.release("km").guarantee.epsilon == 1.0


def test_a_terminal_is_not_commanded_by_a_release(study):
    study.km(code=0)
    text = (study.folder / "km.json").read_text()
    evil = text.replace(Release.from_json(text).made_with, "evil \\u001b]0;pwn\\u0007 [red]")
    (study.folder / "evil.json").write_text(evil)
    shown = study.run("explain", "@evil.json", code=0).stdout
    assert not {"\x1b", "\x07"} & set(shown)


def test_a_fit_may_refuse_values_beyond_the_bounds(study):
    study.write(study.frame.assign(age=study.frame["age"].where(study.frame.index != 5, -99.0)))
    study.survival(out="@clipped.json", code=0)
    result = study.survival("--strict", code=3, says="age")
    assert "99" not in result.stderr.replace(study.path("study.csv"), "")
    study.survival("--strict", "--dask", code=2)
    PrivacyAccountant(3.0, path=study.path("l.sqlite"), charge_refusals=True)
    study.survival("--strict", "--ledger", "@l.sqlite", code=2)
    study.write(study.frame)
    study.survival("--strict", code=0)
