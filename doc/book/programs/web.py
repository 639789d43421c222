"""A service in small: six requests, of which that for /report is slow, and one path that there is not; a database."""
import sqlite3
import time

db = sqlite3.connect(":memory:")
db.execute("create table items (name text, shelf integer)")


def query(sql, *values):
    return db.execute(sql, values).fetchall()


def listing():
    return query("select name from items")


def report():
    time.sleep(0.02)
    return [query("select name from items where shelf = ?", shelf) for shelf in range(5)]


ROUTES = {"/items": listing, "/report": report}


def handle(path):
    try:
        return 200, ROUTES[path]()
    except KeyError:
        return 404, []


for path in ("/items", "/items", "/report", "/none", "/items", "/items"):
    handle(path)
