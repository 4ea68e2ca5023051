import { demoMounts, demoOptions } from './serve.mjs';
import { openChromium } from './test/rig/chromium.mjs';
import { serve } from './test/rig/serve.mjs';
const pages = process.argv[2].split(',').map(p=>p==='home'?'':p), widths=(process.argv[3]??'360,768,1440').split(',').map(Number), schemes=(process.argv[4]??'light,dark').split(','), wait=Number(process.argv[5]??6000), full=process.argv[6]!=='fold';
const server = await serve(demoMounts, demoOptions), browser = await openChromium();
for (const p of pages) for (const scheme of schemes) for (const w of widths) {
  const ctx = await browser.context.browser().newContext({ viewport: { width: w, height: w<500?780:900 }, colorScheme: scheme });
  const page = await ctx.newPage();
  page.on('console', m=>{ if(m.type()==='error') console.log(p,m.text())}); page.on('pageerror', e=>console.log(p,'EXC',e.message));
  await page.goto(`${server.origin}/${p}`); await page.waitForTimeout(wait);
  const over = await page.evaluate(()=>document.documentElement.scrollWidth-innerWidth);
  if (over>0) console.log('overflow', p, w, over);
  await page.screenshot({ path: `/tmp/F14s/${(p||'home').replace(/\W/g,'_')}-${w}-${scheme}.png`, fullPage: full });
  await ctx.close();
}
await browser.close(); await server.close();
