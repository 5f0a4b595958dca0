// Shows the OpenAPI document and sends requests with it. Texts of the document become text, never markup.
"use strict";

const byId = (id) => document.getElementById(id);

function element(name, properties = {}, ...children) {
  const made = Object.assign(document.createElement(name), properties);
  made.append(...children);
  return made;
}

function resolve(api, schema) {
  return schema.$ref ? api.components.schemas[schema.$ref.split("/").pop()] : schema;
}

function kindOf(api, schema) {
  const plain = resolve(api, schema);
  if (plain.anyOf) return plain.anyOf.filter((each) => each.type).map((each) => kindOf(api, each)).join(" or ");
  if (plain.enum) return plain.enum.join(", ");
  return plain.format ? `${plain.type}, ${plain.format}` : plain.type || "";
}

function fieldRows(api, schema, prefix = "") {
  const plain = resolve(api, schema);
  const required = new Set(plain.required || []);
  return Object.entries(plain.properties || {}).flatMap(([name, field]) => {
    const inner = resolve(api, field);
    const row = element("tr", {},
      element("td", {}, element("code", { textContent: prefix + name })),
      element("td", { textContent: required.has(name) ? "yes" : "no" }),
      element("td", { textContent: kindOf(api, field) }),
      element("td", { textContent: field.description || "" }));
    return inner.properties ? [row, ...fieldRows(api, inner, `${prefix}${name}.`)] : [row];
  });
}

function table(headings, rows) {
  const head = element("tr", {}, ...headings.map((text) => element("th", { textContent: text })));
  return element("table", {}, element("thead", {}, head), element("tbody", {}, ...rows));
}

function answerRows(operation) {
  return Object.entries(operation.responses).map(([status, answer]) => {
    const content = answer.content ? answer.content["application/json"] : {};
    const shown = Object.values(content.examples || {}).map((example) =>
      element("pre", { textContent: JSON.stringify(example.value, null, 2) }));
    return element("tr", {},
      element("td", { className: "status", textContent: status }),
      element("td", {}, answer.description, ...shown));
  });
}

async function send(method, path, inputs, body, needsToken) {
  const url = path.replace(/\{(\w+)\}/g, (_, name) => encodeURIComponent(inputs[name].value));
  const headers = {};
  if (needsToken && byId("token").value) headers.Authorization = `Bearer ${byId("token").value.trim()}`;
  if (body) headers["Content-Type"] = "application/json";
  const answer = await fetch(url, { method: method.toUpperCase(), headers, body: body ? body.value : undefined });
  const text = await answer.text();
  let shown = text;
  try { shown = JSON.stringify(JSON.parse(text), null, 2); } catch { /* shown as it came */ }
  const names = [...answer.headers].map(([name, value]) => `${name}: ${value}`).join("\n");
  return { status: answer.status, good: answer.ok, text: `${names}\n\n${shown}` };
}

function form(api, method, path, item, operation) {
  const parts = [];
  const inputs = {};
  for (const parameter of item.parameters || []) {
    const id = `${operation.operationId}-${parameter.name}`;
    inputs[parameter.name] = element("input", { id, value: parameter.example || "" });
    parts.push(element("label", { htmlFor: id, textContent: `${parameter.name}: ${parameter.description}` }),
      inputs[parameter.name]);
  }
  let body = null;
  if (operation.requestBody) {
    const content = operation.requestBody.content["application/json"];
    const examples = Object.entries(content.examples);
    const bodyId = `${operation.operationId}-body`;
    body = element("textarea", { id: bodyId, spellcheck: false });
    const choice = element("select", { ariaLabel: "Example" },
      ...examples.map(([name]) => element("option", { textContent: name })));
    const fill = () => { body.value = JSON.stringify(examples[choice.selectedIndex][1].value, null, 2); };
    choice.addEventListener("change", fill);
    fill();
    parts.push(element("h3", { textContent: "Request" }),
      table(["Field", "Required", "Kind", "Rule"], fieldRows(api, content.schema)),
      element("label", { htmlFor: bodyId, textContent: "Body" }), choice, body);
  }
  const status = element("p", { className: "status", role: "status" });
  const outcome = element("pre", { hidden: true });
  const button = element("button", { textContent: "Send", type: "button" });
  button.addEventListener("click", async () => {
    button.disabled = true;
    outcome.hidden = true;
    status.textContent = "";
    try {
      const answer = await send(method, path, inputs, body, !operation.security);
      status.textContent = String(answer.status);
      status.className = `status ${answer.good ? "good" : "bad"}`;
      outcome.textContent = answer.text;
      outcome.hidden = false;
    } catch {
      status.textContent = "No answer";
      status.className = "status bad";
    } finally {
      button.disabled = false;
    }
  });
  return [...parts, button, status, outcome];
}

function operationBox(api, method, path, item) {
  const operation = item[method];
  return element("details", { id: operation.operationId },
    element("summary", {}, element("h2", {},
      element("span", { className: "method", textContent: method.toUpperCase() }),
      element("code", { textContent: path }), ` ${operation.summary}`)),
    element("p", { textContent: operation.description || "" }),
    ...form(api, method, path, item, operation),
    element("h3", { textContent: "Answers" }),
    table(["Status", "When, and how it looks"], answerRows(operation)));
}

async function show() {
  const api = await (await fetch("/openapi.json")).json();
  byId("title").textContent = `${api.info.title} ${api.info.version}`;
  byId("about").append(element("pre", { textContent: api.info.description }));
  for (const [path, item] of Object.entries(api.paths)) {
    for (const method of ["get", "put", "post"].filter((name) => name in item)) {
      byId("operations").append(operationBox(api, method, path, item));
    }
  }
}

byId("bearer").addEventListener("submit", (event) => event.preventDefault());
show().catch(() => byId("about").append("The document could not be read."));
