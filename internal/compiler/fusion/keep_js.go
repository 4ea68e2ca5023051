package fusion

// withTensorCores is false in the browser, where no target has them: what is done for
// them stays out of the module.
const withTensorCores = false
