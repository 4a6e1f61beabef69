"""A seed that nobody guesses, fixed so that tests can be repeated."""

SECRET = 0x9D4C_71E0_3B58_A62F_C8F5_0E97_64D1_2AB3
