# Writes the files of this folder as people write them in R. From the folder itself:
#
#     LC_ALL=C.UTF-8 Rscript make.R
#
# Made with R 4.2.2, rstanarm 2.21.3, brms 2.18.0 (rstan 2.21.7), posterior 1.4.0, coda 0.19-4,
# rjags 4-13 (JAGS 4.3.1) and tibble 3.1.8, as Debian 12 has them (r-cran-rstanarm, r-cran-brms,
# r-cran-posterior, r-cran-coda, r-cran-rjags, jags; libboost-dev for brms to compile its models).
# It takes two minutes, nearly all of them for compiling.
#
# The people are simulated. values.csv holds what R itself has of each fit, with 17 digits. Normal
# priors on intercepts are at the predictors' means, as both packages have them.

suppressPackageStartupMessages({
  library(rstanarm)
  library(brms)
  library(posterior)
  library(rjags)
  library(tibble)
})
if (!nzchar(system.file("include", package = "BH"))) { # Debian's BH is an empty package
  rstan::rstan_options(boost_lib = "/usr/include")
}
Sys.setenv(USE_CXX14 = 1)

# ---- people ----------------------------------------------------------------------------------
set.seed(20240607)
n <- 240
people <- data.frame(
  Spend = round(rnorm(n, 8.8, 0.9), 4),
  Region = factor(sample(c("North East", "S\u00fcd", "West-1"), n, TRUE)),
  Zone = sample(1:3, n, TRUE)
)
people$Income <- round(3.9 + 0.75 * people$Spend + 0.3 * (people$Zone == 3) + rnorm(n), 4)
people$Kids <- rpois(n, exp(-2.2 + 0.25 * people$Spend))
people$Owner <- factor(ifelse(runif(n) < plogis(-6 + 0.55 * people$Income), "yes", "no"))
utility <- cbind(0, -3.5 + 0.3 * people$Income, 2.5 - 0.3 * people$Income)
utility <- utility - log(-log(matrix(runif(3 * n), n)))
people$Class <- factor(c("high", "low", "mid_2")[max.col(utility)])
write.csv(people, "people.csv", row.names = FALSE, fileEncoding = "UTF-8")
saveRDS(people, "people.rds")
saveRDS(as_tibble(people), "people_tibble.rds")

# ---- what R has of each fit -------------------------------------------------------------------
values <- NULL
note <- function(fit, draws) {
  # draws: a draws_df of the parameters alone.
  digits <- function(x) sprintf("%.17g", x)
  for (name in variables(draws)) {
    x <- draws[[name]]
    last <- x[draws$.chain == max(draws$.chain)]
    values <<- rbind(values, data.frame(
      fit = fit, column = name, n_draws = length(x), n_chains = max(draws$.chain),
      mean = digits(mean(x)), sd = digits(sd(x)), first = digits(x[1]),
      first_of_last_chain = digits(last[1]), last = digits(x[length(x)])
    ))
  }
}
parameters <- function(draws) {
  subset_draws(draws, variable = setdiff(variables(draws), c(
    "lp__", "lprior", "Intercept", "mean_PPD", "log-posterior", "deviance",
    grep("^Intercept_mu", variables(draws), value = TRUE)
  )))
}

# ---- rstanarm: one linear fit in every form ---------------------------------------------------
arm <- function(formula, family, iter, ...) {
  stan_glm(formula, family = family, data = people, chains = 2, cores = 1, iter = iter,
           seed = 7, refresh = 0, prior = rstanarm::normal(0, 1),
           prior_intercept = rstanarm::normal(0, 5), ...)
}
linear <- suppressWarnings(arm(
  Income ~ Spend + Region, gaussian(), 120, prior_aux = rstanarm::exponential(1)
))
draws <- as_draws_df(as.array(linear))
note("linear", draws)
write.csv(as.data.frame(linear), "linear.csv")
write.csv(as.data.frame(linear), "linear_no_row_names.csv", row.names = FALSE)
write.csv2(as.data.frame(linear)[1:5, ], "linear_csv2.csv")
write.csv(as_draws_df(linear$stanfit), "linear_draws_df.csv")
saveRDS(as.data.frame(linear), "linear_data_frame.rds")
saveRDS(as.matrix(linear), "linear_matrix.rds")
saveRDS(as.array(linear), "linear_array.rds")
saveRDS(as_draws_df(linear$stanfit), "linear_draws_df.rds")
saveRDS(draws, "linear_xz.rds", compress = "xz")
saveRDS(draws, "linear_bzip2.rds", compress = "bzip2")
saveRDS(draws, "linear_uncompressed.rds", compress = FALSE)
saveRDS(draws, "linear_ascii.rds", ascii = TRUE)
saveRDS(draws, "linear_version_2.rds", version = 2)
saveRDS(as_draws_matrix(draws), "linear_draws_matrix.rds")
saveRDS(as_draws_array(draws), "linear_draws_array.rds")
saveRDS(as_draws_list(draws), "linear_draws_list.rds")
saveRDS(as_draws_rvars(draws), "linear_draws_rvars.rds")
save(draws, file = "linear.RData")
save(people, draws, file = "two.RData")

# ---- rstanarm: counts and a binary response; brms --------------------------------------------
counts <- suppressWarnings(arm(Kids ~ Spend + Region, poisson(), 800))
note("counts", as_draws_df(as.array(counts)))
saveRDS(as_draws_df(as.array(counts)), "counts.rds", compress = "xz")
binary <- suppressWarnings(arm(Owner ~ Income, binomial(), 800))
note("binary", as_draws_df(as.array(binary)))
saveRDS(as_draws_df(as.array(binary)), "binary.rds", compress = "xz")

bayes <- function(formula, family, iter, prior) {
  brm(formula, data = people, family = family, chains = 2, cores = 1, iter = iter, seed = 7,
      refresh = 0, prior = prior, silent = 2)
}
normals <- c(prior(normal(0, 1), class = "b"), prior(normal(0, 5), class = "Intercept"))
brms_linear <- suppressWarnings(bayes(
  Income ~ Spend + as.factor(Zone) + Region, gaussian(), 120,
  c(normals, prior(exponential(1), class = "sigma"))
))
note("brms_linear", parameters(as_draws_df(brms_linear)))
write.csv(as_draws_df(brms_linear), "brms_linear.csv", row.names = FALSE)
saveRDS(as_draws_df(brms_linear), "brms_linear.rds")
saveRDS(as.data.frame(brms_linear), "brms_linear_data_frame.rds")
brms_counts <- suppressWarnings(bayes(Kids ~ Spend * Region, poisson(), 120, normals))
note("brms_counts", parameters(as_draws_df(brms_counts)))
write.csv(as_draws_df(brms_counts), "brms_counts.csv")
of_level <- function(level) {
  c(set_prior("normal(0, 1)", class = "b", dpar = paste0("mu", level)),
    set_prior("normal(0, 5)", class = "Intercept", dpar = paste0("mu", level)))
}
brms_classes <- suppressWarnings(bayes(
  Class ~ Income, categorical(), 800, c(of_level("low"), of_level("mid2"))
))
note("brms_classes", parameters(as_draws_df(brms_classes)))
saveRDS(as_draws_df(brms_classes), "brms_classes.rds", compress = "xz")

# Whole fits are too large to keep here; the test that they are refused has one without its draws.
small <- linear
small$stanfit <- NULL
saveRDS(structure(small[c("coefficients", "ses", "family", "formula")], class = class(linear)),
        "whole_stanreg.rds")
saveRDS(structure(brms_classes[c("formula", "family", "prior")], class = "brmsfit"),
        "whole_brmsfit.rds", compress = "xz")

# ---- JAGS through coda -----------------------------------------------------------------------
model <- "model {
  for (i in 1:n) { y[i] ~ dnorm(beta[1] + beta[2] * x[i], tau) }
  for (k in 1:2) { beta[k] ~ dnorm(0, 0.01) }
  tau ~ dgamma(1, 1)
  sigma <- 1 / sqrt(tau)
}"
jags <- jags.model(
  textConnection(model), data = list(y = people$Income, x = people$Spend, n = n),
  n.chains = 2, quiet = TRUE,
  inits = lapply(1:2, function(k) list(.RNG.name = "base::Mersenne-Twister", .RNG.seed = k))
)
update(jags, 2000, progress.bar = "none")
samples <- coda.samples(jags, c("beta", "sigma"), n.iter = 500, thin = 5, progress.bar = "none")
note("jags", as_draws_df(samples))
saveRDS(as_draws_rvars(as_draws_df(samples)), "jags_rvars.rds") # beta is a vector in it
saveRDS(samples, "jags_mcmc_list.rds")
saveRDS(samples[[1]], "jags_mcmc.rds")
write.csv(as.matrix(samples, chains = TRUE, iters = TRUE), "jags.csv", row.names = FALSE)

write.csv(values, "values.csv", row.names = FALSE, quote = c(1, 2), fileEncoding = "UTF-8")

# ---- columns of every kind --------------------------------------------------------------------
kinds <- data.frame(
  factor = factor(c("b", "a", NA, "b"), levels = c("b", "a", "unused")),
  ordered = factor(c("low", "high", "mid", NA), levels = c("low", "mid", "high"), ordered = TRUE),
  date = as.Date(c("1999-12-31", NA, "2024-02-29", "1969-07-20")),
  time = as.POSIXct(
    c("2024-02-29 12:30:00", NA, "1970-01-01 00:00:00", "2000-01-01 00:00:01"),
    tz = "UTC"
  ),
  integer = c(3L, NA, -1L, 2147483647L),
  double = c(0.1, NA, 1e300, -0),
  logical = c(TRUE, NA, FALSE, TRUE),
  up = 1:4,
  down = 4:1,
  text = c("Z\u00fcrich", NA, "", "NA"),
  digits = as.character(7:10),
  shown = as.character(c(0.1 + 0.2, 100000, NA, -1234.5))
)
kinds$with_na <- addNA(factor(c("b", NA, "c", "b"))) # the missing value is a level
kinds$scaled <- scale(c(1, 2, 3, 6)) # a matrix of one column
kinds$integer64 <- structure( # as bit64 has them: whole numbers in the place of doubles
  readBin(
    as.raw(c(7, rep(0, 14), 128, rep(255, 8), rep(0, 4), 1, 0, 0, 0)), "double", 4,
    endian = "little"
  ),
  class = "integer64"
)
latin <- "Malm\u00f6"
kinds$latin1 <- rep(iconv(latin, "UTF-8", "latin1"), 4)
labelled <- c(1, 2, NA, 9)
attributes(labelled) <- list(
  label = "Sex of the respondent", labels = c(Male = 1, Female = 2, Unknown = 9),
  class = c("haven_labelled", "vctrs_vctr", "double")
)
kinds$labelled <- labelled
saveRDS(kinds, "kinds.rds")
saveRDS(kinds, "kinds_ascii.rds", ascii = TRUE)
saveRDS(kinds[names(kinds) != "integer64"], "kinds_no_integer64_ascii.rds", ascii = TRUE)
saveRDS(kinds[c(4, 2), 4:5], "kinds_rows.rds")
saveRDS(data.frame(x = 1:2, row.names = c("Anna", "Bo")), "kinds_row_names.rds")
saveRDS(data.frame(x = 1:2, row.names = c("1", "2")), "kinds_row_numbers.rds")
saveRDS(data.frame(x = 1:2, x = 3:4, check.names = FALSE), "same_names.rds")
kinds$nested <- list(1, 2, 3, 4)
saveRDS(kinds, "list_column.rds")
kinds$nested <- matrix(1:8, 4)
saveRDS(kinds, "matrix_column.rds")
saveRDS(list(1, "a"), "list.rds")
saveRDS(list(data.frame(x = 1:3), as.matrix(data.frame(x = 1:2))), "tables.rds")
saveRDS(c(a = 1, b = 2), "vector.rds")
saveRDS(matrix(1:4, 2), "matrix_no_names.rds")
named <- matrix(1:8, 4, dimnames = list(NULL, c("a", "b")))
saveRDS(structure(named, nchains = 3L), "three_chains.rds")
saveRDS(array(1:8, c(2, 2, 2)), "array_no_names.rds")
