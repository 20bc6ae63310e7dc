"""How files are read: never shifted, cut or guessed in silence."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from skdpsurv import PrivacyAccountant, Release
from skdpsurv.cli.files import Table, column_names, looks_like_a_cell, read_table, require_even_rows
from skdpsurv.cli.options import FileFormat
from tests.cli.study import TARGET

DASK = (FileFormat(), FileFormat(dask=True))


def read(path, *columns, form=None, **labels):
    found = read_table(Table(path, columns, labels), form or FileFormat())
    return found.compute() if hasattr(found, "compute") else found


def written(tmp_path, text, name="a.csv"):
    path = tmp_path / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


@pytest.mark.parametrize("form", DASK)
@pytest.mark.parametrize("more", [",", ",NA", ",x", ",,", ""])
def test_a_row_of_another_length_is_refused(tmp_path, form, more):
    rows = f"a,b,c\n1,2,3\n4,5{more and ',6'}{more}\n"
    path = written(tmp_path, rows)
    with pytest.raises(Exception, match="more or fewer cells"):
        read(path, "a", "b", "c", form=form)
    path = written(tmp_path, rows.replace("4,5", "1,2,3\n4,5", 1), "b.csv")
    with pytest.raises(Exception, match="more or fewer cells"):
        require_even_rows(path, form)


@pytest.mark.parametrize("form", DASK)
def test_columns_are_found_by_name_in_any_order(tmp_path, form):
    path = written(tmp_path, '\n\na,b,"c, d"\n1,x,"2\n,3"\n\n4,007,NA\n')
    frame = read(path, "b", "a", form=form, b=())
    assert frame.columns.tolist() == ["b", "a"]
    assert frame["a"].tolist() == [1, 4]
    assert frame["b"].tolist() == ["x", "007"]
    assert read(path, "c, d", form=FileFormat())["c, d"].isna().tolist() == [False, True]


@pytest.mark.parametrize("form", [FileFormat(), FileFormat(dask=True)])
@pytest.mark.parametrize("other", ["7", "7.5", ""])
def test_what_means_missing_is_the_same_whatever_others_hold(tmp_path, form, other):
    """The last record must not decide whether " 99" is 99, nor which double a number is."""
    path = written(tmp_path, f"a,b\n 99,1\n099,1\n4503599627370497001,1\n{other},1\n")
    form = replace(form, missing_value=["99"])
    frame = read(path, "a", "b", form=form)
    assert frame["a"].isna().tolist()[:3] == [True, True, False]
    assert float(frame["a"].iloc[2]) == 4503599627370497001.0
    assert (
        not read_table(Table(path, ("a",), target=("a",)), FileFormat())["a"].iloc[:3].isna().any()
    )


def test_files_of_one_name_with_a_star_must_have_the_same_columns(tmp_path, study):
    first, second = study.frame.iloc[:150], study.frame.iloc[150:]
    study.write(first, "part-1.csv")
    study.write(second, "part-2.csv")
    result = study.survival("--dask", "--seed", "1", data="@part-*.csv")
    assert result.exit_code == 0, result.output
    assert study.survival("--seed", "1", out="@whole.json").exit_code == 0
    both = [Release.load(study.path(name)).values for name in ("model.json", "whole.json")]
    for name, values in both[0].items():
        np.testing.assert_allclose(values, both[1][name], rtol=1e-9, atol=1e-12)
    study.write(second[second.columns[::-1]], "part-2.csv")
    result = study.survival("--dask", data="@part-*.csv", out="@other.json")
    assert result.exit_code == 3
    assert "part-2.csv" in result.stderr


def test_parquet_says_itself_what_its_cells_are(study):
    pytest.importorskip("pyarrow")
    study.frame.set_index("id").to_parquet(study.folder / "index.parquet")
    result = study.km("--missing-value", "-99", data="@index.parquet")
    assert result.exit_code == 2
    for more in ((), ("--dask",)):
        # A named index is a column.
        out = f"@index{len(more)}.json"
        result = study.km("--person", "id", *more, data="@index.parquet", out=out)
        assert result.exit_code == 0, result.output
        assert "300 people" in result.stdout


@pytest.mark.parametrize("name", ["a.csv", "a.csv.gz", "a.csv.xz", "a.csv.bz2"])
@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "cp1252", "utf-16"])
def test_compressed_and_encoded(tmp_path, name, encoding):
    frame = pd.DataFrame({"Größe": [1.5, np.nan], "b": ["ä", "ö"]})
    if encoding == "utf-16" and name != "a.csv":
        pytest.skip("pandas does not write its mark into compressed files")
    frame.to_csv(tmp_path / name, index=False, encoding=encoding)
    form = FileFormat(encoding="utf-8" if encoding == "utf-8-sig" else encoding)
    assert column_names(tmp_path / name, form) == ["Größe", "b"]
    pd.testing.assert_frame_equal(read(tmp_path / name, "Größe", "b", form=form, b=()), frame)


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (b"", "not empty"),
        (b"PK\x03\x04\x00 a spreadsheet", "spreadsheet"),
        ("Größe\n1\n".encode("cp1252"), "--encoding"),
        (b"days;died\n1;0\n", "--separator"),
        (b"days,died\n1\x00,0\n", "--encoding"),
        (b"days,died\n", "at least one row"),
        (b"Days,died\n1,0\n", "Did you mean Days"),
        (b"time,status\n1,0\n", "--separator"),
        (b"2001-12-31,died\n1,0\n", "line of names"),
        (b"true,died\n1,0\n", "line of names"),
    ],
)
def test_what_is_wrong_with_a_file_is_said(study, content, says):
    (study.folder / "bad.csv").write_bytes(content)
    result = study.km(data="@bad.csv")
    assert result.exit_code == 3
    assert says in result.stderr
    assert len(result.stderr.splitlines()) == 1


@pytest.mark.parametrize("name", ["1", "-2.5", "1,5", "1e9", "nan", "2001-12-31", "TRUE"])
def test_cells_that_are_no_names(name):
    assert looks_like_a_cell(name)


@pytest.mark.parametrize("name", ["age", "x1", "may", "now", "Monday", "trueness", "E", "id 2001"])
def test_names(name):
    assert not looks_like_a_cell(name)


def test_a_first_record_never_becomes_a_template(study):
    text = "Ola Nordmann,male,a\nKari Zed,male,b\n"
    (study.folder / "bare.csv").write_text(text)
    result = study.run("schema", "@bare.csv", "--out", "@bare.toml")
    assert result.exit_code == 3
    assert "Ola" not in result.output
    assert not (study.folder / "bare.toml").exists()


def test_labels_with_a_nought_in_front_are_text(study):
    frame = study.frame.assign(stage=study.frame["stage"].map({"I": "01", "II": "02", "III": "10"}))
    study.write(frame, "codes.csv")
    result = study.km("--group", "stage", "--groups", "01,02", "--groups", "10", data="@codes.csv")
    assert result.exit_code == 0, result.output
    assert Release.load(study.path("km.json")).parameters["groups"] == ["01", "02", "10"]


def test_times_and_events_are_never_exchanged(study):
    pytest.importorskip("pyarrow")
    frame = study.frame.assign(days=study.frame["days"] > 100.0)
    frame.to_parquet(study.folder / "flags.parquet")
    for more in ((), ("--dask",)):
        result = study.km(*more, data="@flags.parquet")
        assert result.exit_code == 3
        assert "--time" in result.stderr


def test_events_that_are_truth_values_may_be_named(study):
    pytest.importorskip("pyarrow")
    study.frame.assign(died=study.frame["died"] == 1).to_parquet(study.folder / "b.parquet")
    named = ("--event-is", "true", "--censored-is", "false", "--seed", "1")
    assert study.km(*named, data="@b.parquet").exit_code == 0
    assert study.km("--seed", "1", out="@same.json").exit_code == 0
    assert Release.load(study.path("km.json")) == Release.load(study.path("same.json"))


def test_a_dry_run_never_charges_not_even_a_refusal(study):
    ledger = study.path("study.sqlite")
    accountant = PrivacyAccountant(3.0, path=ledger, charge_refusals=True)
    study.frame["id"] = study.frame["id"].where(study.frame.index > 0)
    study.write(study.frame)
    result = study.km("--person", "id", "--ledger", ledger, "--dry-run")
    assert result.exit_code == 3
    assert accountant.spent() == 0.0
    assert study.km("--person", "id", "--ledger", ledger).exit_code == 3
    assert accountant.spent() == 1.0


def test_an_evaluation_refuses_columns_that_fit_refuses(study):
    assert study.survival().exit_code == 0
    for column, value in (("age", "old"), ("stage", "i"), ("treated", 2)):
        study.write(study.frame.assign(**{column: value}), "bad.csv")
        result = study.run(
            *("evaluate", "@model.json", "@bad.csv", *TARGET, "--drop", "id", "--epsilon", "1"),
            *("--ledger", "@l.sqlite", "--budget", "9", "--out", "@e.json"),
        )
        assert result.exit_code == 3, result.output
        assert column in result.stderr
    assert PrivacyAccountant(path=study.path("l.sqlite")).spent() == 0.0


def test_what_cannot_be_said_is_written_all_the_same(study, monkeypatch):
    def broken(release):
        yield "something"
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("skdpsurv.cli.fitting.result_lines", broken)
    result = study.km()
    assert result.exit_code == 7
    assert "is written, and paid for" in result.stderr
    assert Release.load(study.path("km.json")).guarantee.epsilon == 1.0


def test_several_times_and_labels_with_commas_or_again(study):
    assert study.survival().exit_code == 0
    base = ("predict", "@model.json", "@study.csv", "--drop", "id")
    found = study.json(*base, "--times", "365,730", "--times", "3650", "--out", "@a.csv")
    assert found["columns"] == ["risk", "survival_365", "survival_730", "survival_3650"]
    small = ("schema", "@study.csv", "--time", "days", "--event", "died")
    assert study.run(*small, "--drop", "id,age", "--out", "@small.toml").exit_code == 0
    assert "\nage = [" not in (study.folder / "small.toml").read_text()
    assert study.run(*small, "--drop", "nothing", "--out", "@x.toml").exit_code == 3


def test_a_time_at_a_step_is_behind_it(study):
    frame = study.frame.assign(days=study.frame["days"] / 1000.0)
    study.write(frame, "years.csv")
    result = study.run(
        *("fit", "survival", "@years.csv", *TARGET, "--max-time", "5", "--drop", "id"),
        *("--schema", "@columns.toml", "--epsilon", "1", "--out", "@years.json"),
        *("--set", "n_intervals=50"),
    )
    assert result.exit_code == 0, result.output
    result = study.run(
        *("predict", "@years.json", "@years.csv", "--drop", "id", "--times", "0.69,0.7,0.7001"),
        *("--out", "@p.csv"),
    )
    assert result.exit_code == 0, result.output
    found = pd.read_csv(study.path("p.csv"))
    assert (found["survival_0.7"] == found["survival_0.7001"]).all()
    assert (found["survival_0.7"] < found["survival_0.69"]).any()


def test_wrong_options_end_in_one_line_too(study):
    for arguments in (
        ("fit", "km", "@study.csv", "--epsilon", "0,5"),
        ("fit", "nothing"),
        ("--nonsense",),
        ("fit", "km"),
    ):
        result = study.run(*arguments)
        assert result.exit_code == 2
        (line,) = result.stderr.splitlines()
        assert line.startswith("skdpsurv: parameter: ")
        result = study.run(*arguments, "--json")
        assert result.exit_code == 2
        assert '"exit_code": 2' in result.stderr


def test_what_came_out_is_shown(study):
    result = study.km("--group", "stage", "--groups", "I,II,III")
    assert "survival" in result.stdout
    assert result.stdout.count("3650") == 3
    assert "exp(coef)" in study.survival().stdout
    large = study.km("--epsilon", "50", out="@large.json")
    assert "hardly a limit" in large.stderr


def test_a_terminal_is_not_commanded_by_a_release(study):
    assert study.km().exit_code == 0
    text = (study.folder / "km.json").read_text()
    release = Release.from_json(text)
    evil = text.replace(release.made_with, "evil \\u001b]0;pwn\\u0007 [red]")
    (study.folder / "evil.json").write_text(evil)
    result = study.run("explain", "@evil.json")
    assert result.exit_code == 0, result.output
    assert "\x1b" not in result.stdout
    assert "\x07" not in result.stdout


def test_a_fit_may_refuse_values_beyond_the_bounds(study):
    frame = study.frame.copy()
    frame.loc[5, "age"] = -99.0
    study.write(frame, "beyond.csv")
    assert study.survival(data="@beyond.csv", out="@clipped.json").exit_code == 0
    result = study.survival("--strict", data="@beyond.csv")
    assert result.exit_code == 3
    assert "age" in result.stderr
    assert "99" not in result.stderr.replace(study.path("beyond.csv"), "")
    assert study.survival("--strict").exit_code == 0
    assert study.survival("--strict", "--dask", out="@x.json").exit_code == 2
    PrivacyAccountant(3.0, path=study.path("l.sqlite"), charge_refusals=True)
    ledger = ("--ledger", "@l.sqlite")
    assert study.survival("--strict", *ledger, out="@x.json").exit_code == 2
