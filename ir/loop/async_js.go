package loop

// withAsync is false in the browser, where no target has asynchronous copies, warp-group
// multiply-adds, warp specialisation or fragments: their code stays out of the module.
const withAsync = false
