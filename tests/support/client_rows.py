"""Made-up clients for tests: valid rows, and files of them as partners would send."""

import csv


def cpf(number):
    """The valid CPF whose first nine digits are ``number``."""
    digits = [int(digit) for digit in f"{number:09d}"]
    for weight in (10, 11):
        total = sum(digit * (weight - at) for at, digit in enumerate(digits))
        digits.append(total * 10 % 11 % 10)
    return "".join(map(str, digits))


def client(number, **changes):
    """A valid client, another one for each ``number``; ``changes`` by field name with ``__`` for the dot."""
    row = {
        "externalId": f"P-{number}",
        "cpf": cpf(123_000_000 + number),
        "rg": "",
        "numberOnDealership": f"D{number:06d}",
        "enrollment": str(5000 + number),
        "firstName": "Conceição",
        "lastName": "d'Ávila",
        "email": f"cliente.{number}@correio.example.com",
        "birthdate": "1980-02-01",
        "phoneNumber": "11987654321",
        "address.neighborhood": "Jardim São Luís",
        "address.installationNumber": f"{7_000_000 + number}",
        "address.address": "Rua das Acácias",
        "address.addressNumber": "10",
        "address.city": "São Paulo",
        "address.zipCode": "01310100",
    }
    return row | {name.replace("__", "."): value for name, value in changes.items()}


FIELDS = tuple(client(0))


def body(row):
    """The same client as a request body of the contract; blank cells are absent."""
    top = {name: value for name, value in row.items() if "." not in name and value}
    return {**top, "address": {name[8:]: value for name, value in row.items() if "." in name and value}}


def write_csv(path, rows):
    """Write rows under the contract's headings."""
    with path.open("w", encoding="utf-8", newline="") as stream:
        writer = csv.DictWriter(stream, FIELDS, delimiter=";")
        writer.writeheader()
        writer.writerows(rows)
    return path


def read_csv(path, delimiter=";"):
    """The rows of a file that a load has written."""
    with path.open(encoding="utf-8-sig", newline="") as stream:
        return list(csv.DictReader(stream, delimiter=delimiter))
