"""The planner's page beside the others, as ``skdpsurv planner`` writes it: planner.html."""

from pathlib import Path


def write(app, exception):
    """Write the page into a site that was built."""
    from skdpsurv.report.planner import planner_page

    if exception is None and app.builder.format == "html":
        Path(app.outdir, "planner.html").write_text(planner_page(), encoding="utf-8")


def setup(app):
    """Connect with the end of a build."""
    app.connect("build-finished", write)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
