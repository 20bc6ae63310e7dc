"""The published schema is written from the code: ``python -m tests.test_release_schema``.

Fields that layout 3 shares with layout 2 are described by the schema of that one.
"""

import hashlib
import json
from dataclasses import fields
from pathlib import Path

from skdpsurv.dp import plan as plans
from skdpsurv.dp.references import __version__
from skdpsurv.dp.stated_noise import Noise
from skdpsurv.release import layout

SCHEMAS = Path(__file__).parents[1] / "docs/schemas"
NUMBERS = {"anyOf": [{"type": "number"}, {"type": "array", "items": {"type": "number"}}]}
COST, NODE = {"$ref": "#/$defs/cost"}, {"$ref": "#/$defs/node"}
#: Further fields of compositions, and those that may be missing.
OF_NODES = {
    plans.Sequential: ({"total": COST}, ["total"]),
    plans.AdaptiveChoice: ({"total": COST}, []),
    plans.Disjoint: ({}, []),
    plans.PrivateSelection: ({"eta": {"type": "number"}, "gamma": {"type": "number"}}, []),
}
#: Kinds of columns that layout 2 had not, by their keys; and other keys of columns.
BOUNDS = {"type": "array", "items": {"type": "number"}, "minItems": 2, "maxItems": 2}
COLUMNS = {
    "log": {
        "description": "Bounds of a number, to which it is clipped. The logarithm of its sum with "
        "the offset is scaled from those of the bounds to [-1, 1].",
        **BOUNDS,
    },
    "power": {
        "description": "Bounds of a number, to which it is clipped. Its power is scaled from those "
        "of the bounds to [-1, 1].",
        **BOUNDS,
    },
    "spline": {
        "description": "Bounds of a number, to which it is clipped, then scaled to [-1, 1]. It has "
        "the features of a natural cubic spline.",
        **BOUNDS,
    },
    "interaction": {
        "description": "Names of two columns. The products of their features, of each of the first "
        "in turn, come after the features of all columns.",
        "type": "array",
        "items": {"type": "string"},
        "minItems": 2,
        "maxItems": 2,
    },
}
SHARE = {"type": "number", "exclusiveMinimum": 0, "exclusiveMaximum": 1}
KEYS = {
    "offset": {"description": "Of log: what is added first.", "type": "number"},
    "exponent": {"description": "Of power.", "type": "number"},
    "df": {
        "description": "Of spline: the number of its features. Its knots are evenly spaced.",
        "type": "integer",
        "minimum": 2,
        "maximum": 5,
    },
    "knots": {
        "description": "Of spline, if knots are stated: those between the bounds.",
        "type": "array",
        "items": {"type": "number"},
    },
    "typical": {
        "description": "A usual value, known without the records.",
        "type": ["number", "string", "boolean"],
    },
    "per": {
        "description": "Of a number or date: the step, in its unit, that figures show its effect "
        "for. Of log: a number of doublings; of power, in units of the power.",
        "type": "number",
        "exclusiveMinimum": 0,
    },
    "spread": {
        "description": "Of a number or date: its standard deviation, in its unit; of log and "
        "power, that of the logarithm or power. Known without the records.",
        "type": "number",
        "exclusiveMinimum": 0,
    },
    "over_time": {
        "description": "How its effect changes in a hazard regression: with the logarithm of time, "
        "at times, or along a natural cubic spline up to the horizon.",
        "anyOf": [
            {"const": "log"},
            {
                "type": "object",
                "properties": {"steps": {"type": "array", "items": {"type": "number"}}},
                "required": ["steps"],
                "additionalProperties": False,
            },
            {
                "type": "object",
                "properties": {"spline": {"type": "integer"}},
                "required": ["spline"],
                "additionalProperties": False,
            },
        ],
    },
    "prevalence": {
        "description": "Of a boolean the share of true, of categories that of each label, in "
        "order. Known without the records.",
        "anyOf": [SHARE, {"type": "array", "items": SHARE}],
    },
}
WORDS = {
    "plan": "Everything that was drawn for the guarantee. Null: not stated.",
    "fit_plan": "The same for fit_guarantee.",
    "noise": "Law and variance of the noise on the numbers of a released value, by its name.",
    "law": "laplace or gaussian (discrete, on multiples of the lattice), the same after spherical "
    "(on a vector), semidefinite laplace (on a symmetric matrix), none, sum (of several), or the "
    "name of a mechanism.",
    "scale": "Scale, or deviation, as it was drawn, in units of the lattice for integers.",
    "sensitivity": "Largest move by one record, in units of the scale.",
    "norm": "Norm of the sensitivity; traces: the largest trace of what a record adds to a matrix, "
    "or takes away.",
    "lattice": "Spacing of the released numbers.",
    "variance": "Of each released number, or slightly more.",
    "gives": "Name of the result that is the noisy answer.",
    "strata": "Of StratifiedColumns: the category that has no features, but in products. Each of "
    "its labels, in order, has a row of baseline_coef.",
    "fits": "Constants, ridge and noise of each perturbed fit.",
    "query": "Class of the query, and its public numbers.",
}


def described(name, **schema):
    return {"description": WORDS[name], **schema}


def required(properties, optional=()):
    names = [name for name in properties if name not in optional]
    return {"type": "object", "properties": properties, "required": names}


def closed(schema):
    return {**schema, "additionalProperties": False}


def one_of(**costs):
    return [closed(required({name: value})) for name, value in costs.items()]


def schema():
    """Return the schema of today's layout."""
    whole = json.loads((SCHEMAS / f"release-{layout.SCHEMA_VERSION - 1}.json").read_text())
    version = layout.SCHEMA_VERSION
    whole["$id"], whole["title"] = (
        f"urn:skdpsurv:release:{version}",
        f"A release of skdpsurv, version {version}",
    )
    kinds = dict.fromkeys(("scale", "sensitivity", "lattice"), NUMBERS)
    noise = {f.name: described(f.name, **kinds.get(f.name, {})) for f in fields(Noise)}
    noise["law"] |= {"type": "string"}
    noise["norm"] |= {"enum": ["L1", "L2", "squared L2", "traces"]}
    noise["variance"] |= {"type": "number", "minimum": 0}
    only = {name: noise[name] for name in ("law", "variance")}
    by_name = closed(required(only))
    measurement = {
        "node": {"const": "measurement"},
        "name": {"type": "string"},
        "price": COST,
        **noise,
        "query": described("query", **required({"kind": {"type": "string"}})),
        "gives": described("gives", type="string"),
        "fits": described("fits", type="array", items={"type": "object"}),
    }
    optional = set(measurement) - {"node", "name", "price", "law"}
    nodes = {"type": "array", "items": NODE}
    composed = [
        closed(required({"node": {"const": kind.word}, "nodes": nodes, **own}, less))
        for kind, (own, less) in OF_NODES.items()
    ]
    some, loss = {"type": "array", "items": COST}, {"$ref": "#/$defs/loss"}
    prices = one_of(epsilon=loss, mu={"type": "number"}, sequence=some, disjoint=some)
    plan = {"anyOf": [{"type": "null"}, NODE]}
    whole["properties"] |= {
        "schema_version": {"const": version},
        "plan": described("plan", **plan),
        "fit_plan": described("fit_plan", **plan),
        "noise": described("noise", type="object", additionalProperties=by_name),
    }
    column = whole["$defs"]["column"]
    column["properties"] |= COLUMNS | KEYS
    column["oneOf"] += [{"required": [key]} for key in COLUMNS]
    table = whole["$defs"]["public_columns"]["properties"]
    table["step"] = {"enum": ["PublicColumns", "StratifiedColumns"]}
    table["parameters"]["properties"]["strata"] = described("strata", type="string")
    whole["required"] += sorted(layout.FIELDS[version] - set(whole["required"]))
    whole["$defs"] |= {
        "node": {"anyOf": [required(measurement, optional), *composed]},
        "cost": {
            "description": "A price; or prices one after another, or on sets that share nobody.",
            "anyOf": prices,
        },
    }
    return json.dumps(whole, indent=2) + "\n"


FILE = SCHEMAS / f"release-{layout.SCHEMA_VERSION}.json"


def test_the_file_is_as_the_code_has_it():
    assert FILE.read_text() == schema()
    assert set(OF_NODES) == set(plans.Composite.__subclasses__())
    content = json.loads(schema())
    assert set(content["required"]) == layout.FIELDS[layout.SCHEMA_VERSION] | {"schema_version"}
    assert set(content["properties"]) - set(content["required"]) == layout.OPTIONAL[3]


#: The layout that all versions of a major number write, and SHA-256 of schemas that stay.
MAJOR_LAYOUT = {0: 3, 1: 3}
FROZEN = {2: "f59b6011d643adc571d645ab9ca47148aecac8b84d69048e48e323a8f4476a3c"}


def test_a_published_layout_stays():
    """From 1.0 on that of today is one: its sum is added above."""
    major = int(__version__.partition(".")[0])
    written = layout.SCHEMA_VERSION
    assert written == MAJOR_LAYOUT[major]
    assert [*FROZEN] == [*range(2, written + (major >= 1))]
    for version, expected in FROZEN.items():
        content = (SCHEMAS / f"release-{version}.json").read_bytes()
        assert hashlib.sha256(content).hexdigest() == expected


if __name__ == "__main__":
    FILE.write_text(schema())
