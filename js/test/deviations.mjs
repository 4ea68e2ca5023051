export const deviations = [];
