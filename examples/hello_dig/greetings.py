"""Functions that `hello.dig` calls."""

import digdag


def count_letters(text):
    digdag.env.store(letters=len(text))
