# SPDX-License-Identifier: Apache-2.0
"""JSON schemas for kubeconform, from the OpenAPI document that the Go module k8s.io/kubernetes has: schemas.py SWAGGER FOLDER

One file for each kind, KIND-GROUP-VERSION.json, that refers to definitions.json. Unknown fields are refused."""
import json
import os
import sys


def strict(schema):
    """A schema in which an object has no other fields than those that it names."""
    new = {k: v for k, v in schema.items() if not k.startswith("x-kubernetes")}
    if "$ref" in new:
        return {"$ref": new["$ref"].replace("#/", "definitions.json#/")}
    if new.get("format") == "int-or-string":
        return {"oneOf": [{"type": "string"}, {"type": "integer"}]}
    for key in ("items", "additionalProperties"):
        if isinstance(new.get(key), dict):
            new[key] = strict(new[key])
    if "properties" in new:
        new["properties"] = {name: strict(one) for name, one in new["properties"].items()}
        new.setdefault("additionalProperties", False)
    return new


def main(swagger, folder):
    with open(swagger, encoding="utf-8") as f:
        raw = json.load(f)["definitions"]
    definitions = {name: strict(one) for name, one in raw.items()}
    # A quantity is written as a number, too.
    definitions["io.k8s.apimachinery.pkg.api.resource.Quantity"] = {"oneOf": [{"type": "string"}, {"type": "number"}]}
    os.makedirs(folder, exist_ok=True)
    for name, one in raw.items():
        for kind in one.get("x-kubernetes-group-version-kind", []):
            parts = [kind["kind"], *([kind["group"].split(".")[0]] if kind["group"] else []), kind["version"]]
            own = dict(definitions[name])
            own["properties"] = {**own.get("properties", {}), "kind": {"type": "string", "enum": [kind["kind"]]}}
            own["required"] = sorted({*own.get("required", []), "apiVersion", "kind"})
            with open(os.path.join(folder, "-".join(parts).lower() + ".json"), "w", encoding="utf-8") as f:
                json.dump(own, f)
    with open(os.path.join(folder, "definitions.json"), "w", encoding="utf-8") as f:
        json.dump({"definitions": definitions}, f)


if __name__ == "__main__":
    main(*sys.argv[1:])
