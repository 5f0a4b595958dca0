const servers = [{url: new URL(".", location).href}];  // behind a proxy, all may have a prefix
fetch("openapi.json").then(got => got.json()).then(found =>
  SwaggerUIBundle({spec: {...found, servers}, dom_id: "#page", deepLinking: true, validatorUrl: null}));
