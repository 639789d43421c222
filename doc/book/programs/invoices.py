"""Three hundred orders become invoices: each is read, its prices are looked up and summed up, a page is made of it."""
CATALOGUE = {f"item{n}": 100 + n * 7 for n in range(40)}
LINES = [f"customer{n % 9};" + ",".join(f"item{(n * k) % 40}" for k in range(1, 13)) for n in range(300)]


def split(line):
    customer, items = line.split(";")
    return customer, items.split(",")


def read(lines):
    return [split(line) for line in lines]


def price(item):
    return CATALOGUE[item]


def discount(total, count):
    return total * (100 - min(count, 20)) // 100


def tax(amount):
    return amount * 19 // 100


def total(items):
    net = discount(sum(price(item) for item in items), len(items))
    return net + tax(net)


def escape(text):
    for letter, code in (("&", "&amp;"), ("<", "&lt;"), (">", "&gt;"), ('"', "&quot;")):
        text = text.replace(letter, code)
    return text


def cell(text):
    return "<td>" + escape(text) + "</td>"


def row(item):
    return "<tr>" + cell(item) + cell(str(price(item))) + "</tr>"


def page(customer, items):
    rows = "".join(row(item) for item in items)
    return "<h1>" + escape(customer) + "</h1><table>" + rows + "</table>" + cell(str(total(items)))


def bill(orders):
    return sum(total(items) for _, items in orders)


def main():
    for _ in range(3):
        orders = read(LINES)
        bill(orders)
        for customer, items in orders:
            page(customer, items)


main()
