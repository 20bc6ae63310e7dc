"""A draft of the technical documentation that the European AI Act asks for."""

from __future__ import annotations

from typing import Any

from skdpsurv.dp.references import __version__
from skdpsurv.report.coefficients import cautions
from skdpsurv.report.explain import described
from skdpsurv.report.figures import Advantage
from skdpsurv.report.output_check import output_check
from skdpsurv.report.text import TEMPLATES, prose, sha256


def annex_iv(release: Any, protocol: Any = None) -> str:
    """Return a draft by the nine points of Annex IV of Regulation (EU) 2024/1689, in Markdown.

    It says what the release states, and marks what a person must write. No legal advice.

    Parameters
    ----------
    release : Release
    protocol : Protocol or None, default=None
        Of the study that made the release.

    Returns
    -------
    str

    Raises
    ------
    ValueError
        If the release is of another protocol, or of none.

    Examples
    --------
    >>> from skdpsurv import PrivacyGuarantee, Release
    >>> from skdpsurv.report import annex_iv
    >>> release = Release("Example", PrivacyGuarantee(1.0), {}, {"mean": 0.5}, 0)
    >>> [line for line in annex_iv(release).splitlines() if line.startswith("## 8")]
    ['## 8. EU declaration of conformity (Article 47)']
    """
    study, guarantee = release.study or {}, release.guarantee
    if protocol is not None and study.get("protocol_sha256") != protocol.sha256:
        raise ValueError("protocol must be that of the study that made the release.")
    kind = release.kinds[release.estimator]
    has_model = kind is not None and not kind._card.beyond_release
    model = release.to_estimator() if has_model else None
    words: dict[str, Any] = {"release": release, "protocol": protocol, "version": __version__}
    words |= {"columns": described(release), "sha": sha256(release.to_json())}
    words["bound"] = Advantage.at(guarantee.epsilon, guarantee.delta)
    words["notes"] = cautions(model) if hasattr(model, "coef_") else []
    words["check"] = output_check(release, {})
    return prose(TEMPLATES.get_template("annex_iv.md.jinja").render(words)) + "\n"
