// Takes the pictures of docs/guides and the site's card; scripts/test-viewer --screenshots writes them there.
import { launch, open, type Options } from '../tests/page/browser';

interface Picture {
  name: string;
  hash: string;
  run?: boolean; // on the page of a recording
  options?: Options;
  press?: string; // a button, by its text
  top?: number; // where it begins: below the page's head
}

export const PICTURES: Picture[] = [
  {
    ...{ name: 'card', hash: '#article', press: 'hidden (tensor)', top: 50 },
    options: { width: 1200, height: 680 },
  },
  { name: 'learn', hash: '#learn', options: { height: 800 } },
  { name: 'steps', hash: '#steps?step=3', options: { height: 640 } },
  { name: 'break', hash: '#steps?ranks=4&step=3&edits=9t0', options: { height: 640 } },
  { name: 'compare', hash: '#compare?clock=400&theme=dark', options: { height: 1000 } },
  {
    name: 'time',
    hash: '#time?collective=broadcast&algorithm=double_tree&bytes=1048576',
    options: { height: 720 },
  },
  { name: 'run', hash: '#run', run: true, options: { height: 1080 } },
  { name: 'plan', hash: '#plan?set=0.3.1.0.0', options: { height: 900 } },
  { name: 'moe', hash: '#moe?moe=4.2.8.2.60.125.2', options: { height: 720 } },
];

// Writes one PNG for each; their paths.
export async function takePictures(page: string, run: string, folder: string): Promise<string[]> {
  const browser = await launch();
  const paths: string[] = [];
  for (const { name, hash, run: isRun, options, press, top = 0 } of PICTURES) {
    const opened = await open(browser, isRun ? run : page, hash, options);
    const path = `${folder}/view-${name}.png`;
    if (press) await opened.page.getByRole('button', { name: press }).click();
    const { width, height } = opened.page.viewportSize()!;
    // Waits until all transitions have ended.
    await opened.page.evaluate(() =>
      Promise.all(document.getAnimations().map(({ finished }) => finished)),
    );
    await opened.page.screenshot({ path, clip: { x: 0, y: top, width, height: height - top } });
    paths.push(path);
    await opened.close();
  }
  await browser.close();
  return paths;
}
