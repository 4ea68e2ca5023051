// The dialog that shows the shaders of a plan: the very text that createShaderModule got.

const tokens = /(\/\/.*)|\b(fn|var|let|const|if|else|for|loop|while|break|continue|continuing|return|struct|switch|case|default|true|false)\b|(@\w+)|\b(\d[\w.]*)\b/g;
const classes = ['comment', 'keyword', 'attribute', 'number'];

/** Puts source into an element, with the kinds of words marked. Its text stays as it is. */
function highlight(element, source) {
  const parts = [];
  let at = 0;
  for (const match of source.matchAll(tokens)) {
    parts.push(source.slice(at, match.index));
    const span = document.createElement('span');
    span.className = classes[match.slice(1).findIndex((group) => group !== undefined)];
    span.textContent = match[0];
    parts.push(span);
    at = match.index + match[0].length;
  }
  element.replaceChildren(...parts, source.slice(at));
}

/** How often each kernel is dispatched in a run of an entry. */
function uses(steps, times = 1, found = new Map()) {
  for (const step of steps) {
    if (step.kind === 'repeat') uses(step.steps, times * step.count, found);
    else if (step.kind === 'dispatch') found.set(step.kernel, (found.get(step.kernel) ?? 0) + times);
  }
  return found;
}

/** How many dispatches a run of an entry makes. */
export const dispatches = (plan, entry) => {
  const { steps } = plan.entries.find(({ name }) => name === entry);
  return [...uses(steps).values()].reduce((sum, n) => sum + n, 0);
};

/**
 * Shows the kernels of a plan in the dialog.
 * @param {import('@rlx-go/rlx/runtime').Plan} plan
 * @param {boolean} runs whether these are the kernels that run in this page
 */
export function showKernels(plan, runs) {
  const find = (id) => document.getElementById(id), dialog = find('kernels');
  const byEntry = plan.entries.map(({ name, steps }) => ({ name, uses: uses(steps) }));
  const select = (kernel, index, button) => {
    for (const other of find('kernel-list').querySelectorAll('button')) other.removeAttribute('aria-current');
    button.setAttribute('aria-current', 'true');
    const where = byEntry.filter((entry) => entry.uses.has(index)).map((entry) => `${entry.name} ×${entry.uses.get(index)}`);
    find('kernel-text').textContent = `Runs in ${where.join(', ')}. Workgroup ${kernel.workgroup.join('×')}.`;
    highlight(find('kernel-source'), kernel.source);
    find('kernel-source').parentElement.scrollTop = 0;
  };
  // Those of the training step come first, in their order.
  const step = byEntry.find(({ name }) => name === 'step').uses;
  const order = [...step.keys(), ...plan.kernels.keys().filter((index) => !step.has(index))];
  const items = order.map((index) => {
    const item = document.createElement('li'), button = document.createElement('button');
    button.type = 'button';
    button.textContent = plan.kernels[index].name;
    button.addEventListener('click', () => select(plan.kernels[index], index, button));
    item.append(button);
    return item;
  });
  find('kernel-list').replaceChildren(...items);
  find('kernels-title').textContent = `${plan.kernels.length} kernels${runs ? '' : ' for a GPU; this page runs on the CPU'}`;
  items[0].firstChild.click();
  dialog.showModal();
}
