// A file of its own, since the page's policy forbids scripts within it. validatorUrl: nobody else is asked.
window.ui = SwaggerUIBundle({
  url: "openapi.json",
  dom_id: "#contract",
  deepLinking: true,
  validatorUrl: null,
  defaultModelsExpandDepth: 0,
  requestSnippetsEnabled: true,
});
