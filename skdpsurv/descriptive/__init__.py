"""Private descriptive statistics: Table 1 of a study."""

from skdpsurv.descriptive.table_one import DPTableOne as DPTableOne

__all__ = ["DPTableOne"]
