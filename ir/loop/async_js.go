package loop

// withAsync is false in the browser, where no target has asynchronous copies, multiply-adds
// of warp groups or roles: what is known of them stays out of the module.
const withAsync = false
