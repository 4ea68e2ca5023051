package fusion

// withTensorCores is false in the browser, where no target has tensor cores: the rules
// for them stay out of the module.
const withTensorCores = false
