"""The version of this package, its extras, and where its proofs are."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

__version__ = "0.2.0"


@contextmanager
def extra(name: str, package: str, function: str) -> Iterator[None]:
    """Say which extra to install where a package that it brings is imported, and is not there.

    Parameters
    ----------
    name, package, function : str
        Of the extra, of what it brings, and of what needs that.

    Raises
    ------
    ImportError
    """
    try:
        yield
    except ImportError as error:
        raise ImportError(f'{function} needs {package}: pip install "skdpsurv[{name}]"') from error


#: An assumption of whatever draws noise on vectors or computes gradients: the proof is of the
#: program.
DOUBLES = (
    "the machine computes as docs/proofs/rounding.md of the source distribution of skdpsurv "
    "supposes (IEEE 754 doubles; exp and the like to eight units in the last place), and its "
    "random bits are fair"
)
#: An assumption of noise and losses that somebody else has written: the proof is of a mechanism.
REAL_ARITHMETIC = (
    "real arithmetic: where floating point departs from it is said in docs/user_guide/limits.md of "
    "the source distribution of skdpsurv"
)

PAPERS = {
    "nguyen-hui": (
        'T. T. Nguyen and S. C. Hui, "Differentially private regression for discrete-time survival '
        'analysis", CIKM 2017, arXiv:1708.07436'
    ),
    "nguyen-hui-weibull": (
        'T. T. Nguyen and S. C. Hui, "Privacy-preserving mechanisms for parametric survival '
        'analysis with Weibull distribution", TrustCom 2017, arXiv:1708.04517'
    ),
    "nissim": (
        'K. Nissim, S. Raskhodnikova and A. Smith, "Smooth sensitivity and sampling in private '
        'data analysis", STOC 2007'
    ),
    "chaudhuri": (
        'K. Chaudhuri, C. Monteleoni and A. D. Sarwate, "Differentially private empirical risk '
        'minimization", Journal of Machine Learning Research 12, 1069-1109, 2011'
    ),
    "guo": (
        'X. Guo, Q. Yao, J. T. Kwok, W.-W. Tu, Y. Chen, W. Dai and Q. Yang, "Privacy-preserving '
        'stacking with application to cross-organizational diabetes prediction", '
        "arXiv:1811.09491"
    ),
    "wang": (
        'M. Wang, Z. Ji, H. Kim, S. Wang, L. Xiong and X. Jiang, "Selecting optimal subset to '
        'release under differentially private M-estimators from hybrid datasets", IEEE '
        "Transactions on Knowledge and Data Engineering, 2018"
    ),
    "lei": 'J. Lei, "Differentially private M-estimators", NeurIPS 2011',
    "dwork": (
        'C. Dwork, F. McSherry, K. Nissim and A. Smith, "Calibrating noise to sensitivity in '
        'private data analysis", TCC 2006'
    ),
    "bun-steinke": (
        'M. Bun and T. Steinke, "Concentrated differential privacy: simplifications, extensions, '
        'and lower bounds", TCC 2016-B, arXiv:1605.02065'
    ),
    "canonne": (
        'C. Canonne, G. Kamath and T. Steinke, "The discrete Gaussian for differential privacy", '
        "NeurIPS 2020, arXiv:2004.00010"
    ),
    "liu-talwar": 'J. Liu and K. Talwar, "Private selection from private candidates", STOC 2019',
    "papernot-steinke": (
        'N. Papernot and T. Steinke, "Hyperparameter tuning with Renyi differential privacy", ICLR '
        "2022, arXiv:2110.03620"
    ),
}


def reference(page: str, *papers: str) -> str:
    """Return where something is proved, as a full reference.

    Parameters
    ----------
    page : str
        Of this package's documentation, under its root.
    *papers : str
        Keys of ``PAPERS`` that the proof builds on.

    Examples
    --------
    >>> reference("docs/proofs/noise")
    'skdpsurv 0.2.0, docs/proofs/noise.md (in its source distribution)'
    """
    own = f"skdpsurv {__version__}, {page}.md (in its source distribution)"
    return f"{own}, after {'; '.join(PAPERS[key] for key in papers)}" if papers else own
