"""Tables and files, in and out: what a column holds, CSV, Parquet, R, TOML, NetCDF."""
