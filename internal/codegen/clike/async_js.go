package clike

// withAsync is false in the browser, where no language has asynchronous work.
const withAsync = false
