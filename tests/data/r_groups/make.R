# Draws of models with group-level terms by brms and rstanarm, and what both say of them. From the
# folder itself:
#
#     LC_ALL=C.UTF-8 Rscript make.R
#
# Made with R 4.2.2, rstanarm 2.21.3 and brms 2.18.0 (rstan 2.21.7), as Debian 12 has them
# (r-cran-rstanarm, r-cran-brms; libboost-dev for brms to compile its models). Each model takes a
# minute to compile.
#
# people.csv is simulated. Of each fit <name>.rds has 40 draws as as.data.frame gives them, and
# <name>.csv log_lik of the same draws (rows) at the first 20 people (columns), with 17 digits.

suppressPackageStartupMessages({
  library(rstanarm)
  library(brms)
})
if (!nzchar(system.file("include", package = "BH"))) { # Debian's BH is an empty package
  rstan::rstan_options(boost_lib = "/usr/include")
}
Sys.setenv(USE_CXX14 = 1)

set.seed(20261118)
n <- 80
people <- data.frame(
  x = round(rnorm(n), 3),
  area = factor(sample(c("North East", "S\u00fcd", "West-1"), n, TRUE))
)
eta <- 0.4 * people$x + 0.3 * (people$area == "West-1")
people$visits <- rnbinom(n, size = 2, mu = exp(1 + eta))
people$change <- round(eta + rt(n, 4), 3)
write.csv(people, "people.csv", row.names = FALSE, fileEncoding = "UTF-8")

keep <- function(name, fit) {
  draws <- as.data.frame(fit)
  kept <- round(seq(1, nrow(draws), length.out = 40))
  saveRDS(draws[kept, ], paste0(name, ".rds"))
  found <- log_lik(fit)[kept, 1:20]
  write.table(matrix(sprintf("%.17g", found), length(kept)), paste0(name, ".csv"),
    sep = ",", row.names = FALSE, col.names = FALSE, quote = FALSE)
}

settings <- list(data = people, chains = 2, iter = 600, seed = 1, refresh = 0)
by_area <- change ~ x + (1 + x | area)
keep("rstanarm_groups", do.call(stan_glmer, c(list(by_area, family = gaussian()), settings)))
keep("brms_groups", do.call(brm, c(list(by_area, family = gaussian()), settings)))
counts <- list(visits ~ x + (1 | area), family = poisson())
keep("brms_groups_of_counts", do.call(brm, c(counts, settings)))
