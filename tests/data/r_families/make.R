# Writes the files of this folder: draws of families beyond the first four, as R's packages have them.
# From the folder itself:
#
#     LC_ALL=C.UTF-8 Rscript make.R            # all; or: Rscript make.R arm_gamma brms_student
#
# Made with R 4.2.2, rstanarm 2.21.3 and brms 2.18.0 (rstan 2.21.7), as Debian 12 has them. A model of
# brms compiles for a minute or more.
#
# Of each fit: NAME.csv, the draws as as.data.frame gives them, and NAME_log_lik.csv, the package's own
# log likelihood of the first records (columns) at each draw (rows). The people are simulated.

suppressPackageStartupMessages({
  library(rstanarm)
  library(brms)
})
if (!nzchar(system.file("include", package = "BH"))) { # Debian's BH is an empty package
  rstan::rstan_options(boost_lib = "/usr/include")
}
Sys.setenv(USE_CXX14 = 1)
wanted <- commandArgs(trailingOnly = TRUE)

set.seed(20261118)
n <- 60
x <- round(rnorm(n, 1, 1), 3)
some <- runif(n) < 0.65
latent <- rlogis(n) + x
people <- data.frame(
  x = x,
  count = rnbinom(n, size = 2, mu = exp(0.5 + 0.4 * x)),
  amount = round(rgamma(n, 2, 2 / exp(5 + 0.4 * x)), 2),
  share = round(pmin(pmax(rbeta(n, 4 * plogis(x), 4 * plogis(-x)), 0.01), 0.99), 3),
  number = round(10 + 2 * x + 3 * rt(n, 4), 3),
  bounded = round(qunif(runif(n), 0.05, 9.95), 3),
  answer = factor(c("bad", "fair", "good", "best")[1 + (latent > 0) + (latent > 1) + (latent > 2.5)],
                  levels = c("bad", "fair", "good", "best"), ordered = TRUE),
  zeros = some * (1 + rpois(n, exp(0.3 + 0.3 * x))),
  spent = some * round(rgamma(n, 3, 3 / exp(6 + 0.3 * x)) + 1),
  days = rbinom(n, 7, plogis(0.4 + 0.5 * x))
)
write.csv(people, "people.csv", row.names = FALSE)

store <- function(name, fit) {
  write.csv(as.data.frame(fit), paste0(name, ".csv"), row.names = FALSE)
  write.csv(log_lik(fit)[, 1:6], paste0(name, "_log_lik.csv"), row.names = FALSE)
}
made <- function(name, make) {
  if (length(wanted) > 0 && !(name %in% wanted)) return(invisible())
  fit <- suppressWarnings(suppressMessages(make()))
  store(name, fit)
  cat(name, "\n")
}

# ---- rstanarm: compiled already ---------------------------------------------------------------
arm <- list(data = people, chains = 2, cores = 1, iter = 120, seed = 7, refresh = 0)
glm_of <- function(formula, family) do.call(stan_glm, c(list(formula, family = family), arm))
made("arm_negative_binomial", function() glm_of(count ~ x, neg_binomial_2()))
made("arm_gamma", function() glm_of(amount ~ x, Gamma(link = "log")))
made("arm_binomial", function() glm_of(cbind(days, 7 - days) ~ x, binomial()))
made("arm_ordered_logit", function() {
  do.call(stan_polr, c(list(answer ~ x, prior = R2(0.3, "mean"), method = "logistic"), arm))
})

# ---- brms: each is compiled -------------------------------------------------------------------
bayes <- function(formula, family) {
  brm(formula, family = family, data = people, chains = 2, cores = 1, iter = 120, seed = 7,
      refresh = 0, silent = 2)
}
made("brms_hurdle_gamma", function() bayes(spent ~ x, hurdle_gamma()))
made("brms_ordered_logit", function() bayes(answer ~ x, cumulative()))
made("brms_zero_inflated_negative_binomial", function() bayes(zeros ~ x, zero_inflated_negbinomial()))
made("brms_student_t", function() bayes(number ~ x, student()))
made("brms_truncated_gaussian", function() bayes(bounded | trunc(lb = 0, ub = 10) ~ x, gaussian()))
made("brms_binomial_trials", function() bayes(days | trials(7) ~ x, binomial()))
made("brms_negative_binomial", function() bayes(count ~ x, negbinomial()))
made("brms_gamma", function() bayes(amount ~ x, Gamma(link = "log")))
made("brms_beta", function() bayes(share ~ x, Beta()))
made("brms_lognormal", function() bayes(amount ~ x, lognormal()))
made("brms_hurdle_poisson", function() bayes(zeros ~ x, hurdle_poisson()))
made("brms_zero_inflated_poisson", function() bayes(zeros ~ x, zero_inflated_poisson()))
made("brms_hurdle_lognormal", function() bayes(spent ~ x, hurdle_lognormal()))
made("brms_hurdle_negative_binomial", function() bayes(zeros ~ x, hurdle_negbinomial()))
