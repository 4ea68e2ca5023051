package clike

// withAsync is false in the browser, whose languages have no asynchronous copies and MMA.
const withAsync = false
