// Takes the pictures of docs/guides; scripts/test-viewer --screenshots writes them there.
import { launch, open, type Options } from '../tests/page/browser';

// `run`: on the page of a recording.
export const PICTURES: { name: string; hash: string; run?: boolean; options?: Options }[] = [
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
  { name: 'plan', hash: '#plan?set=0.3.2.0.0', options: { height: 900 } },
  { name: 'moe', hash: '#moe?moe=4.2.8.2.60.125.2', options: { height: 720 } },
];

// Writes one PNG for each; their paths.
export async function takePictures(page: string, run: string, folder: string): Promise<string[]> {
  const browser = await launch();
  const paths: string[] = [];
  for (const { name, hash, run: isRun, options } of PICTURES) {
    const opened = await open(browser, isRun ? run : page, hash, options);
    const path = `${folder}/view-${name}.png`;
    await opened.page.screenshot({ path });
    paths.push(path);
    await opened.close();
  }
  await browser.close();
  return paths;
}
