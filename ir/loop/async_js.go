package loop

// withAsync is false in the browser, where no target has asynchronous copies, warp-group
// multiply-adds or warp specialisation: their code stays out of the module.
const withAsync = false
