package clike

// withAsync is false in the browser, whose languages have no asynchronous copies, MMA and fragments.
const withAsync = false
