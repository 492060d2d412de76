"""Steps of `orders.dig`."""

import digdag

ORDERS = {"berlin": 2, "lyon": 1, "porto": 4}


def fetch(shop):
    digdag.env.store({"orders": {shop: ORDERS[shop]}})


def add_up(orders):
    digdag.env.store({"total": sum(orders.values())})


def keep_rate():
    digdag.env.store({"rate": "1.17"})
