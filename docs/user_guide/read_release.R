# A DPDiscreteTimeSurvival with link "logit", of numbers, categories and conditions (PublicColumns).
library(jsonlite)
release <- fromJSON("model.json", simplifyDataFrame = FALSE)
public <- release$parameters
values <- release$values
stopifnot(release$estimator == "DPDiscreteTimeSurvival", public$link == "logit")

feature <- function(column, x) {
  v <- x[[column$name]]
  if (!is.null(column$categories)) return(outer(v, column$categories[-1], "==") + 0)
  if (is.null(column$bounds)) return(v + 0)
  within <- pmin(pmax(v, column$bounds[1]), column$bounds[2])
  (within - mean(column$bounds)) / (diff(column$bounds) / 2)
}
score <- function(x) {
  z <- do.call(cbind, lapply(release$columns$parameters$columns, feature, x))
  as.vector(z %*% values$coef)
}
survival <- function(x) { # a row for each of x, a column for the end of each interval of time
  u <- seq_len(public$n_intervals) / public$n_intervals
  knots <- seq(0, 1, length.out = public$n_knots)
  d <- sapply(head(knots, -1), function(k) pmax(u - k, 0)^3 / (1 - k))
  basis <- cbind(1, u, d[, seq_len(ncol(d) - 1)] - d[, ncol(d)])
  baseline <- as.vector(basis %*% values$baseline_coef)
  slope <- 1
  if (!is.null(values$recalibration_slope)) {
    slope <- values$recalibration_slope
    baseline <- baseline + approx(values$recalibration_knots, values$recalibration_shift, u)$y
  }
  t(sapply(score(x), function(s) cumprod(1 - plogis(baseline + slope * s))))
}
